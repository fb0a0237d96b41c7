"""States, modes and ids of profiles of entropy values (EVs), on which hosts and the controller agree (docs/mrc.md)."""

from __future__ import annotations

from typing import Literal

ProfileState = Literal["init", "offline", "online"]
EvMode = Literal["auto", "explicit"]
EvEventState = Literal["good", "assumed_bad"]
"""States of an EV whose beginning may be an event."""
MOST_PROFILE_ID = (1 << 64) - 1
