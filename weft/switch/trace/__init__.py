"""Traces of single packets: the events that both switches emit, and their display."""

from weft.switch.trace.events import (
    Copied,
    CopyTrace,
    DigestSent,
    Dropped,
    EgressStarted,
    Enqueued,
    Event,
    Multicast,
    NoCloneSession,
    PacketTrace,
    Received,
    Sent,
    Step,
)
from weft.switch.trace.places import Places

__all__ = [
    "Copied",
    "CopyTrace",
    "DigestSent",
    "Dropped",
    "EgressStarted",
    "Enqueued",
    "Event",
    "Multicast",
    "NoCloneSession",
    "PacketTrace",
    "Places",
    "Received",
    "Sent",
    "Step",
]
