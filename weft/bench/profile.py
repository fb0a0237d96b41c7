"""How much of a draft's procedure is run: in minutes, in an hour, or as it stands."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

_Value = TypeVar("_Value")


class Profile(StrEnum):
    """A profile; `full` has the draft's values."""

    SMOKE = "smoke"
    STANDARD = "standard"
    FULL = "full"

    def of(self, *, smoke: _Value, standard: _Value, full: _Value) -> _Value:
        """Return the value for this profile."""
        return {Profile.SMOKE: smoke, Profile.STANDARD: standard, Profile.FULL: full}[self]


SUMMARIES = {
    Profile.SMOKE: "minutes on two cores: every test once, at its smallest",
    Profile.STANDARD: "up to an hour on two cores for a fabric of some tens of hosts",
    Profile.FULL: "the draft's message sizes, counts and repetitions, where the fabric has the hosts; hours to days",
}
"""Summary of each profile, for people."""
