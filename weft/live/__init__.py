"""A page that shows a lab of the real clock while it is up: load, queues, events, and what its switches hold."""

from weft.live.place import Place
from weft.live.shown import AttachedShown, Shown

__all__ = ["AttachedShown", "Place", "Shown"]
