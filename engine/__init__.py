"""Native discrete-event engine: clock, links, queues, switch runtime, NIC transports."""

from engine._core import (
    Collector,
    Engine,
    Link,
    Node,
    PacketSocket,
    PcapWriter,
    Rng,
    Timer,
    TransmitPort,
    serialisation_ps,
)

__all__ = [
    "Collector",
    "Engine",
    "Link",
    "Node",
    "PacketSocket",
    "PcapWriter",
    "Rng",
    "Timer",
    "TransmitPort",
    "serialisation_ps",
]
