"""Kinds of traffic, and the numbers by which ports count what they send of each."""

from __future__ import annotations

OTHERS = "others"
"""Traffic that no job sends, and kinds beyond the number that ports can count."""
CONTROL = "acknowledgements"
"""Acknowledgements and CNPs, whatever they are for."""
_OTHERS_NUMBER, _CONTROL_NUMBER = 0, 255


class TrafficKinds:
    """Numbers for the names of kinds, given as they come."""

    def __init__(self) -> None:
        self._numbers = {OTHERS: _OTHERS_NUMBER, CONTROL: _CONTROL_NUMBER}

    def number(self, name: str) -> int:
        """Return the number of a kind; the number of `OTHERS` once none are left."""
        if name not in self._numbers:
            number = len(self._numbers) - 1
            if number == _CONTROL_NUMBER:
                return _OTHERS_NUMBER
            self._numbers[name] = number
        return self._numbers[name]

    def name(self, number: int) -> str:
        """Return the name of a number that has been given."""
        return next(name for name, each in self._numbers.items() if each == number)
