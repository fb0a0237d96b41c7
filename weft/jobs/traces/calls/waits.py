"""The order of calls by PyTorch's rules: those of a process group in order, and none before the calls waited for."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from weft.jobs.traces.assembling import check_count
from weft.jobs.traces.calls.recorded import RecordedCall


class WaitOrder:
    """Collects a rank's calls in the order in which it issued them, and what it waited for."""

    def __init__(self) -> None:
        self.calls: list[RecordedCall] = []
        self._frontier: dict[str, int] = {}
        """The last call waited for in each communicator; those before it have ended, too."""
        self._followed: tuple[int, ...] = ()
        self._issued: dict[Hashable, int] = {}
        self._dependency_count = 0

    def issue(self, call: RecordedCall, request: Hashable, *, is_waited: bool) -> None:
        """Add a call, which follows all calls waited for so far; `is_waited` if the rank waits for it at once."""
        number = len(self.calls)
        self._dependency_count += len(self._followed)
        check_count(number, self._dependency_count, str(call.place))
        self.calls.append(replace(call, stream=call.communicator, follows=self._followed))
        self._issued[request] = number
        if is_waited:
            self._wait_for(number)

    def wait(self, request: Hashable) -> None:
        """Note that the rank waits for the last call of this request; unknown ones were issued before the trace."""
        number = self._issued.get(request)
        if number is not None:
            self._wait_for(number)

    def _wait_for(self, number: int) -> None:
        call = self.calls[number]
        if self._frontier.get(call.communicator, -1) >= number:
            return
        # What the call follows has ended when it has.
        past = {*call.follows, number}
        self._frontier = {name: each for name, each in self._frontier.items() if each not in past}
        self._frontier[call.communicator] = number
        self._followed = tuple(self._frontier.values())
