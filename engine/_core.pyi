"""Types of the native module. Each part of the engine adds its classes in a section of its own."""

from collections.abc import Callable
from types import TracebackType
from typing import TypedDict

# --- core: clock, events, links, ports, packet sockets (bind_core.cpp) ---

class TrafficCounter(TypedDict):
    packets: int
    bytes: int

class ClassStats(TypedDict):
    queue_depth_bytes: int
    transmitted: TrafficCounter
    tail_dropped: TrafficCounter

class PortStats(TypedDict):
    queue_depth_bytes: int
    queue_depth_packets: int
    max_queue_depth_bytes: int
    transmitted: TrafficCounter
    tail_dropped: TrafficCounter
    egress_dropped: TrafficCounter
    classes: list[ClassStats]

class LinkStats(TypedDict):
    delivered_packets: int
    delivered_bytes: int
    lost_packets: int
    duplicated_packets: int
    delayed_packets: int

class PacketSocketStats(TypedDict):
    received_packets: int
    received_bytes: int
    ring_dropped_packets: int
    truncated_packets: int
    transmitted_packets: int
    transmitted_bytes: int
    oversize_packets: int
    runt_packets: int
    interface_down_packets: int
    no_buffer_packets: int
    send_error_packets: int

class Lateness(TypedDict):
    count: int
    max_ps: int
    p50_ps: int
    p99_ps: int

class Rng:
    """A seeded random stream (xoshiro256++)."""

    def next_u64(self) -> int: ...
    def uniform(self) -> float:
        """Uniform in [0, 1)."""
    def below(self, bound: int) -> int:
        """Uniform integer in [0, bound). Raises ValueError for 0."""

class EngineLock:
    """Holds an engine still: `with engine.lock(): ...`."""

    def __enter__(self) -> None: ...
    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

class Engine:
    """A clock and its event queue; owns the components made for it, which live as long as it does.

    `Engine(seed=1)` has a virtual clock and runs as fast as it can; `Engine.real_clock(...)` is paced by
    CLOCK_MONOTONIC. All times are int picoseconds of emulated time. Events at equal times are served in the
    order in which they were scheduled. Every method may be called from any thread.
    """

    def __init__(self, *, seed: int = 0) -> None: ...
    @staticmethod
    def real_clock(*, epoch_ns: int | None = None, dilation: float = 1.0, seed: int = 0) -> Engine:
        """An engine whose time is (CLOCK_MONOTONIC - epoch_ns) / dilation; epoch_ns None means now.

        Raises ValueError unless dilation is above 0.
        """
    @property
    def now_ps(self) -> int:
        """Time of the event being served; between events of a real clock, the clock's time."""
    @property
    def seed(self) -> int: ...
    @property
    def is_real(self) -> bool: ...
    @property
    def epoch_ns(self) -> int | None: ...
    @property
    def dilation(self) -> float | None: ...
    @property
    def events_served(self) -> int: ...
    @property
    def live_packets(self) -> int:
        """Packets that exist at this moment, in queues, on links, in nodes."""
    def schedule_at(self, time_ps: int, callback: Callable[[], object]) -> None:
        """Call callback() at time_ps (at once if that is past). What it raises, the run raises."""
    def inject(self, node: Node, port: int, data: bytes, time_ps: int | None = None) -> None:
        """Have node receive a packet at its port at time_ps (None: now)."""
    def stream(self, name: str) -> Rng:
        """A random stream that depends on the engine's seed and the name only."""
    def run(self) -> None:
        """Serve events until there are none. Raises RuntimeError on a real clock."""
    def run_until(self, time_ps: int) -> None:
        """Serve all events up to and including time_ps; now_ps is then time_ps."""
    def run_for(self, duration_ps: int) -> None: ...
    def request_stop(self) -> None:
        """Make the run in progress return after the event being served."""
    def start(self) -> None:
        """Serve events in a thread of the engine's own. Raises RuntimeError on a virtual clock."""
    def stop(self) -> None:
        """End the thread. Raises what an event raised in it. Does nothing when there is none."""
    @property
    def running(self) -> bool:
        """start() was called and stop() not yet."""
    @property
    def failure(self) -> str | None:
        """Why the thread ended by itself, if it did."""
    def lock(self) -> EngineLock: ...
    def lateness(self) -> Lateness:
        """How far behind its time each event of a real clock was served, in emulated picoseconds."""
    def reset_lateness(self) -> None: ...

class Timer:
    """Calls callback() when it fires; cancelled when it is garbage."""

    def __init__(self, engine: Engine, callback: Callable[[], object]) -> None: ...
    def arm(self, time_ps: int) -> None:
        """Fire at time_ps, after all that was armed for that time before. An armed timer moves."""
    def cancel(self) -> None: ...
    @property
    def deadline_ps(self) -> int | None:
        """None when not armed."""

class Node:
    """Whatever takes packets."""

class Collector(Node):
    """Keeps what it receives."""

    def __init__(self, engine: Engine) -> None: ...
    @property
    def packets(self) -> list[tuple[int, int, bytes]]:
        """(time_ps, port, bytes) of each packet since the start or clear()."""
    @property
    def received_packets(self) -> int:
        """Total; clear() does not reset it."""
    @property
    def received_bytes(self) -> int: ...
    def clear(self) -> None: ...

class PcapWriter:
    """A capture file with nanosecond stamps of emulated time. Raises OSError if it can't be written."""

    def __init__(self, path: str, snap_length: int = 262144) -> None: ...
    @property
    def path(self) -> str: ...
    @property
    def packets_written(self) -> int: ...
    @property
    def packets_failed(self) -> int: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...

class Link:
    """One direction of a link: delay, seeded faults, and the node at its far end.

    Probabilities are per packet. `extra_delay_ps` is what a delayed packet takes longer. The faults' random
    stream is the engine's stream "link <name>". Raises ValueError for a probability outside 0 to 1 or a
    negative delay.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        name: str = "",
        delay_ps: int = 0,
        loss: float = 0.0,
        duplicate: float = 0.0,
        delay_probability: float = 0.0,
        extra_delay_ps: int = 0,
    ) -> None: ...
    def connect(self, node: Node, port: int = 0) -> None: ...
    def set_faults(
        self,
        *,
        loss: float = 0.0,
        duplicate: float = 0.0,
        delay_probability: float = 0.0,
        extra_delay_ps: int = 0,
    ) -> None: ...
    @property
    def delay_ps(self) -> int: ...
    def stats(self) -> LinkStats: ...
    def reset_stats(self) -> None: ...

class TransmitPort(Node):
    """Byte-accounted queues (strict priority, the highest class first) in front of a serialiser.

    rate_bps 0 is unpaced. queue_capacity_bytes bounds all classes together. As a Node it queues what it
    receives in class 0. Raises ValueError for classes outside 1 to 8 or a capacity of 0.
    """

    def __init__(
        self,
        engine: Engine,
        link: Link,
        *,
        rate_bps: int = 0,
        queue_capacity_bytes: int = 524288,
        classes: int = 8,
    ) -> None: ...
    def enqueue(self, data: bytes, priority_class: int = 0) -> bool:
        """Queue a frame now. False: dropped at the tail, and counted."""
    @property
    def rate_bps(self) -> int: ...
    @rate_bps.setter
    def rate_bps(self, rate_bps: int) -> None: ...
    @property
    def queue_depth_bytes(self) -> int: ...
    def set_capture(self, capture: PcapWriter | None) -> None:
        """Record every frame as its serialisation starts."""
    def stats(self) -> PortStats: ...
    def reset_stats(self) -> None: ...

class PacketSocket(Node):
    """An AF_PACKET socket on an interface of this process's network namespace; real clock only.

    What it receives as a Node is sent out of the interface; what arrives there goes to the connected node.
    Raises OSError if it can't be opened, RuntimeError on a virtual clock.
    """

    def __init__(
        self, engine: Engine, interface: str, *, promiscuous: bool = True, ring_bytes: int = 2097152
    ) -> None: ...
    def connect(self, node: Node, port: int = 0) -> None:
        """Where received frames go. Until then they wait in the ring."""
    def close(self) -> None: ...
    @property
    def interface(self) -> str: ...
    @property
    def mtu_bytes(self) -> int: ...
    def set_capture(self, capture: PcapWriter | None) -> None:
        """Record the frames received from and sent to the interface."""
    def stats(self) -> PacketSocketStats: ...
    def reset_stats(self) -> None: ...

def serialisation_ps(size_bytes: int, rate_bps: int) -> int:
    """Picoseconds that size_bytes occupy a line of rate_bps (0: none), rounded to the nearest."""
