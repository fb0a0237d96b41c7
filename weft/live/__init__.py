"""Web page of a running lab under the real clock: load, queues, events, and the switches' entries."""

from weft.live.place import Place
from weft.live.shown import AttachedShown, Shown

__all__ = ["AttachedShown", "Place", "Shown"]
