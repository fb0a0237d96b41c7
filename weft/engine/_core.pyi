"""Types of the native module. Each part of the engine adds its classes in a section of its own."""

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

# --- core: clock, events, links, ports, packet sockets (python/bind_core.cpp, python/bind_ports.cpp) ---

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
    control_transmitted: TrafficCounter
    tail_dropped: TrafficCounter
    headroom_dropped: TrafficCounter
    down_dropped: TrafficCounter
    last_down_drop_ps: int
    egress_dropped: TrafficCounter
    classes: list[ClassStats]

class LinkStats(TypedDict):
    delivered_packets: int
    delivered_bytes: int
    lost_packets: int
    lost_bytes: int
    corrupted_packets: int
    corrupted_bytes: int
    cut: TrafficCounter
    duplicated_packets: int
    delayed_packets: int

class MissingTraffic(TypedDict):
    packets: int
    bytes: int

class Ledger(TypedDict):
    """What became of all packets: entered + resized_bytes = left + dropped + what is held, or some are missing.

    `entered`: sent (by hosts), from_controller, multicast and cloned (copies by switches), duplicated (by faults),
    flow_control (made by MACs), injected (by callers). `left`: delivered (to queue pairs), to_controller, flow_control
    (taken by MACs), collected (by callers). `dropped`: by the names of `drop_names`, those that there were. Held are
    `queued`, `in_flight` on links, and `in_switches`, whose pipelines take time.
    """

    entered: dict[str, TrafficCounter]
    left: dict[str, TrafficCounter]
    dropped: dict[str, TrafficCounter]
    resized_bytes: int
    queued: TrafficCounter
    in_flight: TrafficCounter
    in_switches: TrafficCounter
    missing: MissingTraffic

class IngressStats(TypedDict):
    held_bytes: int
    max_held_bytes: int
    own_used_bytes: int
    max_own_used_bytes: int
    is_paused: bool
    dropped_packets: int
    dropped_bytes: int

class BufferPortStats(TypedDict):
    queue_bytes: list[int]
    ingress: list[IngressStats]

class BufferStats(TypedDict):
    capacity_bytes: int
    shared_capacity_bytes: int
    used_bytes: int
    max_used_bytes: int
    shared_used_bytes: int
    class_bytes: list[int]
    ports: dict[int, BufferPortStats]

class PfcClassStats(TypedDict):
    pauses_sent: int
    resumes_sent: int
    pauses_received: int
    resumes_received: int
    paused_ps: int
    is_paused: bool

class CreditLaneStats(TypedDict):
    priority_class: int
    stalls: int
    stalled_ps: int
    is_stalled: bool
    available_blocks: int

class CreditStats(TypedDict):
    updates_sent: int
    updates_received: int
    lanes: list[CreditLaneStats]

class PortMacStats(TypedDict):
    received: TrafficCounter
    control_taken: TrafficCounter
    unknown_control_packets: int
    passing: TrafficCounter
    credits: CreditStats | None
    pfc: list[PfcClassStats] | None

class PacketSocketStats(TypedDict):
    received_packets: int
    received_bytes: int
    ring_dropped_packets: int
    truncated_packets: int
    unfinished_checksum_packets: int
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
    CLOCK_MONOTONIC. All times are int picoseconds of emulated time. At equal times arrivals from links are served
    first, in the order of the links' connecting, then events in the order in which they were scheduled. Every method
    may be called from any thread. `Partitions.add()` makes an engine that is run together with others.
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
        """Packets that exist at this moment, in queues, on links, in nodes; for one of several partitions without those
        that come from others and are still on links.
        """
    def ledger(self) -> Ledger:
        """What became of all packets so far. Raises RuntimeError on a real clock, and for one of several partitions."""
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
        """Make the run in progress return after the event being served (of partitions: its window)."""
    def start(self, *, realtime_priority: int = 0) -> None:
        """Serve events in a thread of the engine's own. Raises RuntimeError on a virtual clock.

        With a realtime priority (1 to 99) the thread goes before all ordinary ones, so that it is late less
        often. That takes CAP_SYS_NICE; raises PermissionError without.
        """
    def stop(self) -> None:
        """End the thread. Raises what an event raised in it. Does nothing when there is none."""
    @property
    def running(self) -> bool:
        """start() was called and stop() not yet."""
    @property
    def failure(self) -> str | None:
        """Why the thread ended by itself, if it did."""
    @property
    def failure_fd(self) -> int:
        """A descriptor that is readable while there is a failure. Raises RuntimeError on a virtual clock."""
    def lock(self) -> EngineLock: ...
    def lateness(self) -> Lateness:
        """How far behind its time each event of a real clock was served, in emulated picoseconds."""
    def reset_lateness(self) -> None: ...

class PartitionsLock:
    """Holds all partitions still: `with partitions.lock(): ...`."""

    def __enter__(self) -> None: ...
    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

class Partitions:
    """Engines of one virtual clock that meet only through links, run by one thread or several.

    In windows of the shortest delay of a link between two of them, each is served alone; the outcome is the same for
    every number of workers. Components of one partition must not be touched by events of another. All times are int
    picoseconds. Every method may be called from any thread, but not from events of the partitions.
    """

    def __init__(self, *, seed: int = 0, workers: int = 1) -> None:
        """Raises ValueError for a number of workers outside 1 to 256."""
    def add(self, *, group: int | None = None) -> Engine:
        """A new partition's engine, which is not run by itself.

        Partitions of one `group` (0 or more) have their traffic with each other, as the switches of a plane do: one
        worker serves them all, where groups can be shared out evenly.
        """
    def __len__(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def workers(self) -> int:
        """Threads that serve a run, the caller's included; may be set between runs."""
    @workers.setter
    def workers(self, workers: int) -> None: ...
    def shares(self) -> list[list[int]]:
        """Which partitions each worker serves, by number in the order in which they were added."""
    @property
    def now_ps(self) -> int:
        """Up to when everything has been served."""
    @property
    def window_ps(self) -> int:
        """How long windows are: the shortest delay of a link between partitions, at most a microsecond.

        What an event tells Python (a listener's call) is told that much later.
        """
    @property
    def windows_served(self) -> int: ...
    @property
    def events_served(self) -> int: ...
    @property
    def live_packets(self) -> int:
        """Packets that exist at this moment, in queues, on links, in nodes."""
    def ledger(self) -> Ledger:
        """What became of all packets of all partitions so far."""
    def schedule_at(self, time_ps: int, callback: Callable[[], object]) -> None:
        """Call callback() at time_ps (at once if that is past), after all events of that time; it may touch all."""
    def forget_scheduled(self) -> None:
        """Drop all calls that have not been made, and what they keep alive. RuntimeError: within a run."""
    def run(self) -> None:
        """Serve events until there are none. Raises what an event raised, when its window has been served."""
    def run_until(self, time_ps: int) -> None:
        """Serve all events up to and including time_ps; now_ps is then time_ps."""
    def run_for(self, duration_ps: int) -> None: ...
    def request_stop(self) -> None:
        """Make the run in progress return after the present window or callback."""
    def lock(self) -> PartitionsLock: ...
    def lateness(self) -> Lateness:
        """Nothing: a virtual clock is never late."""
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
    """A capture file with nanosecond stamps of emulated time. Raises OSError if it can't be written.

    pcapng where `path` ends so, else pcap, which has no room for directions and for what the interface is. Frames of
    time 0 are dated `origin_ns`.
    """

    def __init__(
        self,
        path: str,
        snap_length: int = 262144,
        origin_ns: int = 0,
        *,
        interface: str = "",
        description: str = "",
        rate_bps: int = 0,
    ) -> None: ...
    @property
    def path(self) -> str: ...
    @property
    def packets_written(self) -> int: ...
    @property
    def packets_failed(self) -> int: ...
    @property
    def error(self) -> int:
        """Why the file is incomplete, as an errno; 0 as long as nothing has failed."""
    def flush(self) -> None: ...
    def close(self) -> None:
        """Raises OSError, once, if what was written is not all in the file."""

class Link:
    """One direction of a link: delay, seeded faults, and the node at its far end.

    Probabilities are per packet. `extra_delay_ps` is what a delayed packet takes longer. `bit_error_rate` is that of
    each bit: a packet of n bytes arrives whole with probability (1 - bit_error_rate)^(8n), and is dropped on arrival
    otherwise. The faults' random stream is the engine's stream "link <name>". Raises ValueError for a probability
    outside 0 to 1 or a negative delay.
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
        bit_error_rate: float = 0.0,
    ) -> None: ...
    def connect(self, node: Node, port: int = 0) -> None: ...
    def set_faults(
        self,
        *,
        loss: float = 0.0,
        duplicate: float = 0.0,
        delay_probability: float = 0.0,
        extra_delay_ps: int = 0,
        bit_error_rate: float = 0.0,
    ) -> None: ...
    def draw_from(self, stream: Rng) -> None:
        """Draw faults from a stream from now on."""
    def cut(self) -> TrafficCounter:
        """Lose what is on the link, serialisation included, as a failure does; returns how much.

        The sending port is to be told by itself (`TransmitPort.set_up`). Raises RuntimeError within an event of a
        partition.
        """
    def set_capture(self, capture: PcapWriter | None) -> None:
        """Record every packet as it arrives at the far end."""
    def set_early(self, early: bool) -> None:
        """Let packets arrive with their first bit, for a far end that cuts through; by default with their last."""
    @property
    def delay_ps(self) -> int: ...
    def stats(self) -> LinkStats: ...
    def reset_stats(self) -> None: ...

class TransmitPort(Node):
    """Byte-accounted queues (strict priority, the highest class first) in front of a serialiser.

    rate_bps 0 is unpaced. queue_capacity_bytes bounds all classes together. Classes with quantum_bytes share what the
    strict ones leave, by deficit weighted round robin. As a Node it queues what it
    receives in class 0. With arrivals_serialised a packet that finds the line idle leaves as it comes (its sender
    has paced it), and only what comes faster than the rate is held back. Raises ValueError for classes outside
    1 to 8, a capacity of 0, or a quantum of 1 to 63.
    """

    def __init__(
        self,
        engine: Engine,
        link: Link,
        *,
        rate_bps: int = 0,
        queue_capacity_bytes: int = 524288,
        classes: int = 8,
        arrivals_serialised: bool = False,
        quantum_bytes: Sequence[int] = ...,
    ) -> None: ...
    def enqueue(self, data: bytes, priority_class: int = 0, ingress_port: int = 0xFFFF) -> bool:
        """Queue a frame now. False: dropped, and counted. ingress_port is where a switch took it in."""
    def set_buffer(self, buffer: SharedBuffer, number: int) -> None:
        """Take memory of a buffer, as its port `number`. Raises RuntimeError when packets wait already."""
    def set_up(self, up: bool) -> None:
        """Down: drop what waits and what comes, and ask no source."""
    @property
    def is_up(self) -> bool: ...
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

class SharedBuffer:
    """A switch's packet memory. reserved_bytes and alpha are by class (eight of each).

    Raises ValueError for a capacity of 0 or an alpha that is not above 0.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        capacity_bytes: int,
        reserved_bytes: Sequence[int] = ...,
        alpha: Sequence[float] = ...,
    ) -> None: ...
    def add_port(self, number: int) -> None:
        """Add a port and its queues' reservations. Raises ValueError when they do not fit."""
    def threshold_bytes(self, priority_class: int) -> int:
        """What a queue of the class may take of the shared memory now."""
    def stats(self) -> BufferStats: ...
    def reset_stats(self) -> None: ...

class PortMac(Node):
    """The receiving half of a port with flow control, in front of `node`; `transmit` is its sending half."""

    def __init__(self, engine: Engine, transmit: TransmitPort, node: Node, port: int = 0) -> None: ...
    def enable_pfc(self, *, source_mac: str, pause_quanta: int = 0xFFFF) -> None:
        """Obey PFC frames. Raises ValueError for an unpaced port or quanta of 0."""
    def set_pause_limits(
        self,
        buffer: SharedBuffer,
        number: int,
        priority_class: int,
        *,
        headroom_bytes: int,
        xoff_bytes: int = 0,
        alpha: float = 0.0,
        hysteresis_bytes: int = 0,
    ) -> None:
        """Pause the far end when what came in here holds more than xoff_bytes, or alpha times the free memory.

        It goes on below the threshold less hysteresis_bytes. Raises ValueError for a class or port that is not there,
        without a threshold, or when the headroom does not fit; RuntimeError without PFC.
        """
    def enable_credits(
        self,
        *,
        source_mac: str,
        classes: Sequence[int],
        buffer_bytes: int,
        peer_buffer_bytes: int | None = None,
        largest_frame_bytes: int,
        update_interval_ps: int = 20_000_000,
    ) -> None:
        """Send each class within the far end's credits, and give it credits for buffer_bytes.

        `peer_buffer_bytes`: what the far end has, by default as much. The sender waits until it has credit for a frame
        of largest_frame_bytes. Raises ValueError for no class, or a buffer below such a frame or above 128 KiB;
        RuntimeError at a port with PFC.
        """
    def set_credit_memory(self, buffer: SharedBuffer, number: int, priority_class: int) -> None:
        """Take the memory of a class from a buffer, in which this is port `number`.

        Without it everything is taken at once. Raises ValueError when it does not fit, RuntimeError where the class has
        no credits.
        """
    def set_switching(
        self,
        *,
        latency_ps: int = 0,
        cut_through: bool = False,
        header_limit_bytes: int = 256,
        parsed_by: Switch | None = None,
    ) -> None:
        """Hand a packet to the node `latency_ps` after it has come whole, or with cut_through after its headers have.

        What the program of `parsed_by` parses is header; a packet with more than `header_limit_bytes` of it is stored
        first. Cut-through needs a link that is early. Raises ValueError for a negative latency, or cut-through at an
        unpaced port or without a switch.
        """
    def restart(self) -> None:
        """Forget what the far end had asked for, and ask it anew: the link has come up again."""
    def stats(self) -> PortMacStats: ...
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
    def set_capture(self, received: PcapWriter | None, sent: PcapWriter | None) -> None:
        """Record frames received from and sent to the interface, in one file or two."""
    def stats(self) -> PacketSocketStats: ...
    def reset_stats(self) -> None: ...

CREDIT_BLOCK_BYTES: int
"""What credits count (InfiniBand Architecture 1.4, volume 1, 7.9.4.2)."""
MOST_CREDIT_BUFFER_BYTES: int
"""Half of what the twelve bits of a count can tell apart."""

def pfc_headroom_bytes(*, rate_bps: int, delay_ps: int, frame_bytes: int, response_ps: int = 0) -> int:
    """Return the bytes that may still come after a port has decided to pause a class (802.1Qbb, annex O)."""

def serialisation_ps(size_bytes: int, rate_bps: int) -> int:
    """Picoseconds that size_bytes occupy a line of rate_bps (0: none), rounded to the nearest."""

# --- transport: RoCEv2 codec, NIC, queue pairs (python/bind_codec.cpp, python/bind_transport.cpp) ---

class IntHopFields(TypedDict, total=False):
    rate_code: int
    timestamp_ns: int
    tx_units: int
    queue_cells: int

class TelemetryFields(TypedDict, total=False):
    echo: bool
    overflow: bool
    hop_count: int
    path_id: int
    hops: list[IntHopFields]

class BthFields(TypedDict, total=False):
    opcode: int
    solicited: bool
    migrated: bool
    partition_key: int
    fecn: bool
    becn: bool
    destination_qp: int
    acknowledge_request: bool
    psn: int

class DethFields(TypedDict, total=False):
    q_key: int
    source_qp: int

class RethFields(TypedDict, total=False):
    virtual_address: int
    rkey: int
    length_bytes: int

class AtomicEthFields(TypedDict, total=False):
    virtual_address: int
    rkey: int
    swap_or_add: int
    compare: int

class AethFields(TypedDict, total=False):
    syndrome: int
    msn: int

class AggregationFields(TypedDict, total=False):
    kind: int
    operation: int
    job_id: int
    epoch: int
    slot: int
    round: int
    rank: int
    lane_count: int
    flags: int

class RoceHeaders(TypedDict, total=False):
    """Everything of a packet above its payload; MAC and IP addresses are text.

    `telemetry` is the INT shim; `identification` and `dont_fragment` are IPv4's, `flow_label` is IPv6's. Of
    the extension headers (`deth` to `aggregation`) a packet has those of its opcode.
    """

    destination_mac: str
    source_mac: str
    telemetry: TelemetryFields
    source_ip: str
    destination_ip: str
    dscp: int
    ecn: int
    hop_limit: int
    identification: int
    dont_fragment: bool
    flow_label: int
    source_udp_port: int
    bth: BthFields
    deth: DethFields
    reth: RethFields
    atomic_eth: AtomicEthFields
    aeth: AethFields
    atomic_ack_original: int
    immediate: int
    invalidate_rkey: int
    aggregation: AggregationFields

def build_packet(headers: RoceHeaders, payload: bytes = b"") -> bytes:
    """An Ethernet frame (without FCS): lengths, pad, checksums and iCRC computed, UDP checksum 0.

    Fields left out have RoCEv2's usual values (DSCP 26, ECT(0), hop limit 64, P_Key 0xFFFF) or 0. Raises
    ValueError for unknown fields, values that do not fit, or a payload that the opcode does not carry.
    """

def parse_packet(frame: bytes) -> tuple[RoceHeaders, bytes]:
    """Headers and payload (without pad) of an Ethernet frame.

    Raises ValueError, ending in parse_error()'s name, unless the frame is valid.
    """

def parse_error(frame: bytes) -> str:
    """What parse_packet() would refuse the frame for: "none", "not_roce", "truncated", "bad_icrc" …"""

def icrc(ip_packet: bytes) -> int:
    """Invariant CRC over a packet from its IP header up to, and without, the iCRC itself (annex A17.3.3).

    It is sent little-endian. Raises ValueError if IP, UDP and BTH headers are not complete.
    """

def crc32(data: bytes, *, portable: bool = False) -> int:
    """CRC-32 of IEEE 802.3, as zlib.crc32; portable: by tables whatever the CPU offers."""

class Completion(TypedDict):
    work_id: int
    kind: str
    status: str
    fault: str
    queue_pair: int
    length_bytes: int
    immediate: int | None
    posted_ps: int
    completed_ps: int

class CompletionHandler:
    """Takes the completions of queue pairs, on the engine's thread."""

class CompletionQueue(CompletionHandler):
    """Keeps completions until they are polled."""

    def __init__(self, engine: Engine) -> None: ...
    def poll(self, limit: int | None = None) -> list[Completion]:
        """Take out completions, oldest first.

        kind: write, send (ours, acknowledged), receive, write_immediate (the peer's, arrived), aggregate.
        status: success, local_length_error, remote_invalid_request, remote_access_error,
        remote_operation_error, retry_exceeded, rnr_retry_exceeded, flushed. fault: none, local, peer,
        network: whose doing the error is.
        """
    def wait(self, count: int, timeout_seconds: float) -> bool:
        """True once count completions wait to be polled, False after that much real time."""

class MemoryRegion:
    """Memory registered with a NIC, by Nic.register_memory() or Nic.register_sink()."""

    @property
    def rkey(self) -> int: ...
    @property
    def virtual_address(self) -> int: ...
    @property
    def length_bytes(self) -> int: ...
    def deregister(self) -> None:
        """Refuse the rkey from now on, for ever. Requests in progress keep the buffer alive."""

class NicStats(TypedDict):
    received_packets: int
    received_bytes: int
    not_roce_packets: int
    dropped: dict[str, int]

class Nic(Node):
    """A RoCEv2 adapter: validates what arrives, hands it to queue pairs, lets them take turns in sending."""

    def __init__(
        self,
        engine: Engine,
        name: str,
        *,
        pcie_rate_bps: int = 0,
        dma_latency_ps: int = 0,
        per_message_overhead_ps: int = 0,
        per_packet_overhead_ps: int = 0,
    ) -> None:
        """A NIC whose payload crosses PCIe, at pcie_rate_bps (0: unlimited) in each direction for all ports.

        dma_latency_ps passes from the end of a transfer until its bytes are there, per_message_overhead_ps
        before the first packet of each message sent, per_packet_overhead_ps before each data packet sent or
        received. Raises ValueError for negative times.
        """
    @property
    def name(self) -> str: ...
    def add_port(self, line: TransmitPort, *, mac: str, addresses: Sequence[str]) -> int:
        """Send through line, at its rate; returns the port's number, from 0, for Link.connect()."""
    def allocate_queue_pair_number(self) -> int:
        """A number not in use, for a queue pair to be made later."""
    def register_memory(
        self, buffer: Buffer | NDArray[Any], *, virtual_address: int = 0, remote_write: bool = True
    ) -> MemoryRegion:
        """Register a C-contiguous buffer without copying it.

        remote_write False: to send from only; the buffer may be read-only then. Raises ValueError if it is
        not contiguous, BufferError if it is read-only.
        """
    def register_sink(self, length_bytes: int, *, virtual_address: int = 0) -> MemoryRegion:
        """A region whose bytes are checked and counted, but kept nowhere (load generators)."""
    def detach(self, queue_pair: QueuePair) -> None:
        """Packets for it are dropped and counted from now on."""
    def set_capture(self, port: int, capture: PcapWriter | None) -> None:
        """Record what the port receives and sends."""
    def stats(self, port: int) -> NicStats:
        """What arrived at a port; `dropped` by reason.

        Reasons: parse_error()'s names and foreign_mac, foreign_address, unknown_queue_pair.
        """
    def reset_stats(self) -> None: ...

class QueuePair:
    """What a NIC sends and receives for."""

class RcCounters(TypedDict):
    data_packets_sent: int
    data_bytes_sent: int
    retransmitted_packets: int
    timeouts: int
    sequence_naks_received: int
    rnr_naks_received: int
    fatal_naks_received: int
    acknowledgements_received: int
    stale_acknowledgements: int
    invalid_acknowledgements: int
    cnps_received: int
    data_packets_received: int
    data_bytes_received: int
    duplicate_packets: int
    out_of_sequence_packets: int
    out_of_window_packets: int
    ce_marked_packets: int
    acknowledgements_sent: int
    sequence_naks_sent: int
    rnr_naks_sent: int
    fatal_naks_sent: int
    cnps_sent: int
    wrong_source: int
    wrong_partition_key: int
    unexpected_opcode: int
    dropped_in_error: int

class RcStats(RcCounters):
    in_flight_bytes: int
    outstanding_requests: int
    error: str
    responder_error: str

class CongestionControl:
    """Decides a queue pair's window and rate from acknowledgements, CNPs, losses and timers.

    Made by make_congestion_control() and given to one queue pair, which calls it; calling it oneself is for
    tests and models. Times are emulated picoseconds, window_bytes counts frame bytes (Ethernet to iCRC),
    pacing_rate_bps 0 means as fast as the port takes frames, next_deadline_ps None that no timer runs.
    """

    @property
    def name(self) -> str: ...
    @property
    def window_bytes(self) -> int: ...
    @property
    def pacing_rate_bps(self) -> int: ...
    @property
    def next_deadline_ps(self) -> int | None: ...
    def on_packet_sent(self, now_ps: int, frame_bytes: int, retransmission: bool = False) -> None: ...
    def on_acknowledgement(
        self,
        now_ps: int,
        *,
        acknowledged_bytes: int = 0,
        acknowledged_packets: int = 1,
        in_flight_bytes: int = 0,
        round_trip_ps: int = 0,
        sequence: int = 0,
        next_sequence: int = 0,
        hops: int = 0,
        congestion_experienced: bool = False,
        telemetry: TelemetryFields | None = None,
    ) -> None:
        """Tell of an acknowledgement.

        sequence: of the newest packet covered, counted from the queue pair's start; next_sequence: of the
        next packet never sent before; round_trip_ps 0: that packet had been sent twice; hops: routers that
        the acknowledgement passed; congestion_experienced: a switch marked (CE) what it newly covers; telemetry:
        the INT stack that it echoes.
        """
    def on_congestion_notification(self, now_ps: int) -> None:
        """Tell of a CNP."""
    def on_loss(self, now_ps: int, timeout: bool) -> None:
        """Tell of a sequence NAK or a retransmission timeout."""
    def on_deadline(self, now_ps: int) -> None:
        """Tell that next_deadline_ps has come."""

class PathChoice:
    """Decides the entropy (14 bits) of every packet of a queue pair, made by spray() or flowlet()."""

    @property
    def name(self) -> str: ...
    def entropy(self, now_ps: int, sequence: int = 0, retransmission: bool = False) -> int:
        """The entropy of the packet that is about to be sent: of its UDP source port and IPv6 flow label."""
    def on_delivered(
        self, now_ps: int, entropy: int, round_trip_ps: int, congestion_experienced: bool = False
    ) -> None:
        """Tell that a packet has arrived; round_trip_ps 0: it had been sent twice.

        congestion_experienced: a switch had marked it (CE).
        """
    def on_lost(self, now_ps: int, entropy: int) -> None:
        """Tell that a packet counts as lost."""

def spray(seed: int, path_count: int) -> PathChoice:
    """Another of path_count (1 to 2^14) entropies for every packet, pseudo-randomly."""

def flowlet(seed: int, gap_ps: int) -> PathChoice:
    """Another entropy after every pause of more than gap_ps."""

class CongestionPreset:
    """A named set of an algorithm's parameters, and what goes with it at the receiver."""

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str:
        """Where its values come from."""
    @property
    def cnp_interval_ps(self) -> int:
        """A receiver's CNPs for a flow come at most so often."""

class CongestionParameter:
    """A parameter as its algorithm declares it."""

    @property
    def name(self) -> str:
        """It ends in its unit (_ps, _bps, _bytes, _packets) if it has one."""
    @property
    def default(self) -> float | None:
        """None where it follows from `default_rule`."""
    @property
    def default_rule(self) -> str:
        """What the default follows from; empty where it is a number."""
    @property
    def least(self) -> float: ...
    @property
    def most(self) -> float: ...
    @property
    def meaning(self) -> str: ...
    @property
    def source(self) -> str:
        """Paper and section, or where else it comes from."""

class CongestionNeeds:
    """What an algorithm needs of the fabric and of receivers."""

    def __init__(
        self,
        *,
        telemetry: bool = False,
        marks: bool = False,
        every_acknowledgement: bool = False,
        one_path: bool = False,
    ) -> None: ...
    @property
    def telemetry(self) -> bool:
        """INT in data packets, echoed by acknowledgements."""
    @property
    def marks(self) -> bool:
        """CE marks of switches: as CNPs, or echoed by acknowledgements."""
    @property
    def every_acknowledgement(self) -> bool:
        """An acknowledgement of each packet, not one for several."""
    @property
    def one_path(self) -> bool:
        """All packets of a flow on one path."""

class CongestionControlKind:
    """A congestion control as its file declares it."""

    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def needs(self) -> CongestionNeeds: ...
    @property
    def parameters(self) -> list[CongestionParameter]:
        """In the order of their declaration."""
    @property
    def presets(self) -> list[CongestionPreset]:
        """The default first; none where it has none."""

def congestion_controls() -> list[CongestionControlKind]:
    """All congestion controls, in alphabetical order."""

def congestion_control_names() -> list[str]: ...
def congestion_control_kind(name: str) -> CongestionControlKind:
    """A congestion control by its name. Raises ValueError for an unknown one, naming the valid ones."""

def make_congestion_control(
    name: str,
    *,
    line_rate_bps: int,
    base_round_trip_ps: int,
    frame_bytes: int,
    ack_interval_packets: int = 1,
    parameters: Mapping[str, float] = {},
    preset: str = "",
    nearest_round_trip_ps: int = 0,
    nearest_hops: int = 0,
    hop_round_trip_ps: int = 0,
    int_rates_bps: Sequence[int] = ...,
) -> CongestionControl:
    """A congestion control for a path: rate of the sender's port, idle round trip, frame of a full packet.

    ack_interval_packets: how many packets are acknowledged together; nearest_round_trip_ps and nearest_hops: of the
    nearest peer's path, and the routers on it; hop_round_trip_ps: what each router more adds; int_rates_bps: what the
    16 rate codes of the fabric's INT stand for, by default the standard ones.

    Parameters left out are the preset's (empty: the default one), and fit the path; their names are those that the
    control declares (congestion_control_kind). Raises ValueError for unknown names and values
    out of range, naming the valid ones.
    """

def congestion_parameters_in_force(
    name: str,
    *,
    line_rate_bps: int,
    base_round_trip_ps: int,
    frame_bytes: int,
    ack_interval_packets: int = 1,
    parameters: Mapping[str, float] = {},
    preset: str = "",
    nearest_round_trip_ps: int = 0,
    nearest_hops: int = 0,
    hop_round_trip_ps: int = 0,
    int_rates_bps: Sequence[int] = ...,
) -> dict[str, float]:
    """All parameters of what make_congestion_control() would make, those left out by their defaults. Raises as it."""

class ExtensionError(ValueError):
    """A user's class cannot be used, or gave what cannot be used."""

class Acknowledgement:
    """What a sender learns from an acknowledgement."""

    @property
    def now_ps(self) -> int: ...
    @property
    def acknowledged_bytes(self) -> int:
        """Frame bytes, from Ethernet to iCRC, that it newly covers."""
    @property
    def acknowledged_packets(self) -> int: ...
    @property
    def in_flight_bytes(self) -> int:
        """Frame bytes that are still not acknowledged."""
    @property
    def round_trip_ps(self) -> int:
        """Of the newest packet covered; 0 if that one was retransmitted."""
    @property
    def sequence(self) -> int:
        """The newest packet covered, counted from the queue pair's start."""
    @property
    def next_sequence(self) -> int:
        """The next packet that will be sent for the first time."""
    @property
    def hops(self) -> int:
        """Routers that the acknowledgement itself passed."""
    @property
    def congestion_experienced(self) -> bool:
        """Whether a switch marked (CE) the packets that it newly covers."""
    @property
    def telemetry(self) -> TelemetryFields | None:
        """The INT stack that the receiver echoed, None without INT."""

def python_congestion_control(
    name: str,
    *,
    window_bytes: Callable[[], object],
    pacing_rate_bps: Callable[[], object] | None,
    next_deadline_ps: Callable[[], object] | None,
    on_packet_sent: Callable[[int, int, bool], object] | None,
    on_acknowledgement: Callable[[Acknowledgement], object],
    on_congestion_notification: Callable[[int], object] | None,
    on_loss: Callable[[int, bool], object] | None,
    on_deadline: Callable[[int], object] | None,
) -> CongestionControl:
    """A congestion control that calls these; None stands for a method that there is not.

    After each event window, rate and deadline are asked for. What they raise ends the run, and so does a value out of
    range (ExtensionError).
    """

def python_path_choice(
    name: str,
    *,
    entropy: Callable[[int, int, bool], object],
    on_delivered: Callable[[int, int, int, bool], object] | None,
    on_lost: Callable[[int, int], object] | None,
    on_congestion_notification: Callable[[int], object] | None,
) -> PathChoice:
    """A choice of path that calls these; None stands for a method that there is not.

    What they raise ends the run, and so does an entropy out of range (ExtensionError).
    """

class RcQueuePair(QueuePair):
    """A connected RC queue pair on a port of a NIC: WRITE and SEND.

    retransmission "selective-repeat" (at both ends) carries WRITEs only, places them in any order and sends
    again only what was overtaken by a packet sent more than reordering_window_ps later. path_choice None: all
    packets have one entropy. congestion_control and path_choice serve this queue pair alone.
    retransmission_timeout_ps must lie above the round trip and, on a real clock, the host's jitter (see the
    function of that name). queue_pair None allocates a number; source_udp_port None takes 14 bits of entropy
    from addresses and numbers. telemetry: data carries the INT shim. An acknowledgement is asked for with
    every ack_interval_packets-th packet, the last of a message and one that closes the window.
    receive_for_immediate: a WRITE with immediate consumes a posted receive, as the specification has it;
    otherwise it needs none. rnr_retry_limit 7: for ever. Raises ValueError naming the parameter that is out of
    range.
    """

    def __init__(
        self,
        nic: Nic,
        port: int,
        completions: CompletionHandler,
        *,
        remote_queue_pair: int,
        destination_mac: str,
        destination_ip: str,
        congestion_control: CongestionControl,
        retransmission_timeout_ps: int,
        path_choice: PathChoice | None = None,
        queue_pair: int | None = None,
        source_udp_port: int | None = None,
        initial_psn: int = 0,
        remote_initial_psn: int = 0,
        path_mtu_bytes: int = 1024,
        telemetry: bool = False,
        retransmission: str = "go-back-n",
        reordering_window_ps: int = 0,
        ack_interval_packets: int = 1,
        timeout_backoff_limit: int = 5,
        retry_limit: int = 7,
        rnr_retry_limit: int = 7,
        rnr_timer_code: int = 4,
        receive_for_immediate: bool = False,
        cnp_interval_ps: int = 50_000_000,
    ) -> None: ...
    @property
    def queue_pair(self) -> int:
        """Its number."""
    @property
    def source_udp_port(self) -> int: ...
    def observe(
        self, source: int, destination: int, plane: int, *, messages: bool = True, telemetry: bool = False
    ) -> None:
        """Have the engine's probe record messages sent, and INT stacks echoed, under these ranks and plane.

        Raises RuntimeError if the engine has no probe.
        """
    def post_write(
        self,
        memory: MemoryRegion | None,
        offset_bytes: int,
        length_bytes: int,
        remote_address: int,
        rkey: int,
        *,
        immediate: int | None = None,
        work_id: int = 0,
    ) -> None:
        """RDMA WRITE from memory (None: zeros) to the peer's remote_address; completes as "write".

        With an immediate, the peer gets "write_immediate" when all has arrived. The bytes must not change
        before the completion. Raises ValueError for a range outside the region or more than 2^31 bytes.
        """
    def post_write_as_length(
        self,
        length_bytes: int,
        remote_address: int,
        rkey: int,
        *,
        immediate: int | None = None,
        work_id: int = 0,
    ) -> None:
        """Like post_write, with payloads that are only counted: the peer writes nothing, nothing is checked."""
    def post_send(
        self,
        memory: MemoryRegion | None,
        offset_bytes: int,
        length_bytes: int,
        *,
        immediate: int | None = None,
        work_id: int = 0,
    ) -> None:
        """SEND into a receive that the peer has posted; completes as "send"."""
    def post_receive(
        self, memory: MemoryRegion | None, offset_bytes: int, length_bytes: int, *, work_id: int = 0
    ) -> None:
        """A place (None: bytes are discarded) for one incoming SEND; completes as "receive"."""
    @property
    def last_telemetry(self) -> TelemetryFields | None:
        """The INT stack that the newest acknowledgement echoed."""
    def stats(self) -> RcStats: ...
    def reset_stats(self) -> None: ...

def retransmission_timeout_ps(
    base_round_trip_ps: int, *, round_trips: float = 4.0, wall_clock_floor_ns: int = 0, dilation: float = 1.0
) -> int:
    """The larger of round_trips base round trips and a floor of real time, in emulated time.

    Under a real clock a host's process may run late, so the floor must lie above its jitter.
    """

def full_frame_bytes(
    path_mtu_bytes: int, *, is_ipv6: bool = False, telemetry: bool = False, retransmission: str = "go-back-n"
) -> int:
    """Frame of a data packet with a full payload, from Ethernet to iCRC (go-back-N: within a message)."""

def bandwidth_delay_product_bytes(rate_bps: int, round_trip_ps: int) -> int:
    """Bytes on the way in a round trip, rounded up."""

# --- collectives: schedules, aggregation client, block floating point (python/bind_collective.cpp) ---

_Range = tuple[int, int, int]  # buffer, offset_bytes, length_bytes

class RunStatus(TypedDict):
    state: Literal["waiting", "running", "finished", "failed", "cancelled"]
    started_ps: int | None
    finished_ps: int | None
    nodes_done: int
    node_count: int
    error: str

class AggregationStats(TypedDict):
    contributions_sent: int
    retransmitted_packets: int
    timeouts: int
    early_retransmissions: int
    results_accepted: int
    ce_marked_packets: int
    stale_results: int
    foreign_results: int
    wrong_epoch_results: int
    unexpected_results: int
    invalid_results: int
    unexpected_packets: int
    dropped_in_error: int
    messages_in_flight: int
    outstanding_requests: int
    error: str

class RunnableSchedule:
    """What a `ScheduleExecutor` runs."""

class Schedule(RunnableSchedule):
    """A dependency graph of one rank. Each add_... returns the number of the buffer or node it adds.

    A node starts when all nodes of `after` are done. Raises ValueError, naming the node, for a range beyond
    its buffer, ranges that do not fit each other or the data type, or a predecessor that does not exist.
    `dtype` is "int32" or "float32", `operation` "sum", "max" or "min".
    """

    def __init__(self) -> None: ...
    def add_buffer(self, buffer: Buffer | NDArray[Any]) -> int:
        """Add a writable C-contiguous array, kept alive while the schedule is."""
    def add_zeros(self, length_bytes: int) -> int:
        """Add a source of zeros without memory, for writes only."""
    def add_lengths(self, length_bytes: int) -> int:
        """Add a source of zeros for writes only, whose packets carry their payload as a length."""
    def add_write(
        self,
        channel: int,
        source: _Range,
        *,
        remote_address: int,
        rkey: int,
        immediate: int | None = None,
        after: Sequence[int] = (),
    ) -> int: ...
    def add_wait_receive(self, channel: int, immediate: int, *, after: Sequence[int] = ()) -> int: ...
    def add_reduce(
        self, destination: _Range, source: _Range, *, dtype: str, operation: str, after: Sequence[int] = ()
    ) -> int: ...
    def add_copy(self, destination: _Range, source: _Range, *, after: Sequence[int] = ()) -> int: ...
    def add_aggregate(
        self, aggregator: int, range: _Range, *, dtype: str, operation: str, after: Sequence[int] = ()
    ) -> int: ...
    def add_delay(self, duration_ps: int, *, after: Sequence[int] = ()) -> int: ...
    @property
    def node_count(self) -> int: ...

_Formula = tuple[int, int, int]
"""First, and so much more per turn of a loop and per lane of a block."""
_Chunk = tuple[int, int, int, int, bool]
"""A table's number, the formula of the chunk's number, and whether it is cut into as many pieces as there are lanes."""

class ElementTable:
    """Ranges of elements by number, modulo how many there are. ValueError for none, and for descending ones."""

    @staticmethod
    def evenly(start: int, stop: int, parts: int) -> ElementTable:
        """Parts of a range, whose lengths differ by at most one, as a formula."""
    @staticmethod
    def of(ranges: Sequence[tuple[int, int]]) -> ElementTable:
        """Starts and ends."""
    def __len__(self) -> int: ...
    def at(self, number: int) -> tuple[int, int]: ...

class LaneSchedule:
    """What a rank does as lanes with loops; see weft.traffic.lane_schedule.LaneSchedule.

    Raises ValueError for numbers that name nothing, and for more transfers than immediates.
    """

    def __init__(self, dtype: str, operation: str, run_tag: int = 0) -> None: ...
    def add_table(self, table: ElementTable) -> int: ...
    def add_marks(self) -> int: ...
    def add_stage(self, after: Sequence[int] = ()) -> int: ...
    def add_grid(self, cell_count: int, moves_data: Sequence[bool]) -> int: ...
    def add_block(self, lane_count: int) -> None: ...
    def add_loop(self, turns: int, grid: int, cell: _Formula) -> None: ...
    def send(
        self,
        elements: _Chunk,
        channel: _Formula,
        transfer: int,
        to_scratch: bool,
        landing: _Chunk | None,
        shift: int,
        slot: int,
        ahead: int,
    ) -> None: ...
    def receive(
        self, elements: _Chunk, channel: _Formula, transfer: int, in_turn: bool, slot: int
    ) -> None: ...
    def reduce(self, elements: _Chunk, shift: int, slot: int) -> None: ...
    def copy(self, elements: _Chunk, shift: int, slot: int) -> None: ...
    def aggregate(self, elements: _Chunk, plane: int, slot: int) -> None: ...
    def delay(self, duration_ps: int, slot: int) -> None: ...
    def await_elements(self, elements: _Chunk, marks: int) -> None: ...
    def mark_elements(self, elements: _Chunk, marks: int) -> None: ...
    def await_acknowledgement(self) -> None: ...
    def append(
        self,
        part: LaneSchedule,
        data_elements: int,
        scratch_elements: int,
        first_transfer: int,
        first_channel: int,
        after: Sequence[int],
    ) -> int: ...
    @property
    def transfer_limit(self) -> int:
        """Above the largest number of a transfer."""
    def step_count(self, with_data: bool) -> int: ...

class BoundLanes(RunnableSchedule):
    """A rank's lanes over its buffers and channels.

    `payload` is "data", "zeros" or "lengths". Channels, in the schedule's order: the executor's number, address and key
    of the peer's data, address and key of its scratch buffer; aggregators, by plane: the executor's numbers. Raises
    ValueError for what the schedule needs and lacks.
    """

    def __init__(
        self,
        schedule: LaneSchedule,
        *,
        payload: str,
        data: Buffer | NDArray[Any] | None,
        scratch: Buffer | NDArray[Any] | None,
        channels: Sequence[tuple[int, int, int, int, int]],
        aggregators: Sequence[int | None],
    ) -> None: ...
    @property
    def step_count(self) -> int: ...

class ScheduleStepper:
    """A run of a schedule without engine or network: it says what is to be transferred, and is told what arrives.

    Reductions and copies are done as they come up. Each call goes as far as the schedule can without more arrivals.
    """

    def __init__(self, schedule: RunnableSchedule) -> None: ...
    def begin(self) -> None: ...
    def arrived(self, channel: int, immediate: int) -> None: ...
    def completed(self, step: int) -> None:
        """A write has been acknowledged, or an aggregation is done."""
    def delay_over(self, token: int) -> None: ...
    def take_writes(self) -> list[tuple[int, int, int, int, int, int, int | None]]:
        """Since the last call: step, channel, source (0: zeros), length, remote address, rkey, immediate."""
    def take_aggregations(self) -> list[tuple[int, int, int, int]]:
        """Since the last call: step, aggregator, address, length in bytes."""
    def take_delays(self) -> list[tuple[int, int, int]]:
        """Since the last call: step, duration in ps, token."""
    @property
    def done(self) -> list[int]:
        """Steps that are done, in that order."""
    @property
    def is_done(self) -> bool: ...
    @property
    def unclaimed_arrivals(self) -> int:
        """Writes that have arrived and that nothing has waited for."""

class RunWrites(TypedDict):
    node: NDArray[np.int64]
    posted_ps: NDArray[np.int64]
    completed_ps: NDArray[np.int64]
    retransmitted_packets: NDArray[np.int64]

class ScheduleExecutor(CompletionHandler):
    """Runs schedules over the queue pairs that were made with it as their completion handler.

    As a file (`fileno`) it becomes readable when a run ends.
    """

    def __init__(self, engine: Engine) -> None: ...
    def add_channel(self, queue_pair: RcQueuePair) -> int: ...
    def add_scale_up_channel(self, channel: ScaleUpChannel) -> int: ...
    def add_aggregator(self, client: AggregationClient) -> int: ...
    def remove_channel(self, channel: int) -> None: ...
    def remove_aggregator(self, aggregator: int) -> None: ...
    def start(
        self, schedule: RunnableSchedule, start_ps: int = 0, *, run: int = 0, keep_writes: bool = False
    ) -> int:
        """Start at start_ps (now, if that is past); returns the number of the run, `run` or the next one.

        Raises ValueError if the schedule names a channel or aggregator that does not exist, or if there is such a run.
        """
    def status(self, run: int) -> RunStatus: ...
    def writes(self, run: int) -> RunWrites:
        """Columns of the WRITEs acknowledged so far, of a run that was started to keep them; by their nodes."""
    def cancel(self, run: int) -> None: ...
    def forget(self, run: int) -> None:
        """Release a run that has ended. Raises RuntimeError if it has not."""
    def observe(self, rank: int) -> None:
        """Have the engine's probe record every node of runs that start from now on, as a step of this rank.

        Raises RuntimeError if the engine has no probe.
        """
    def take_ended(self) -> list[int]:
        """Runs that ended since the last call."""
    def set_end_listener(self, listener: Callable[[], object] | None) -> None:
        """Call listener() from the engine whenever a run ends; None ends that."""
    def fileno(self) -> int: ...

class ScaleUpStats(TypedDict):
    sent_messages: int
    sent_bytes: int
    received_messages: int
    received_bytes: int
    refused_messages: int
    abandoned_messages: int

class ScaleUpDomain:
    """The links between the ranks of a host: a crossbar with a port for each, which blocks nothing and loses nothing.

    A message takes its bytes at the rate out of the sender's port, the latency, and its bytes in through the
    receiver's port; out and in overlap, so n bytes on idle ports take n/rate + latency. Raises ValueError for a rate
    of 0 or a negative latency.
    """

    def __init__(self, engine: Engine, *, rate_bps: int, latency_ps: int, port_count: int) -> None: ...
    def attach(self, port: int, nic: Nic) -> None:
        """Let what is sent to a port be written to memory that is registered with a NIC of the same engine."""
    def stats(self, port: int) -> ScaleUpStats: ...
    def reset_stats(self, port: int) -> None: ...

class ScaleUpChannel:
    """One end of a connection between two ports of a domain; numbers are unique at a port, as queue pairs' are.

    Completions are those of an RDMA WRITE, at both ends when the last bit is in. Raises ValueError for ports there
    are not and a number in use.
    """

    def __init__(
        self,
        domain: ScaleUpDomain,
        completions: CompletionHandler,
        *,
        port: int,
        number: int,
        peer_port: int,
        peer_number: int,
    ) -> None: ...
    def close(self) -> None:
        """Forget what is under way; its data is read no more."""

class FlowRecords(TypedDict):
    flow: NDArray[np.int64]
    started_ps: NDArray[np.int64]
    finished_ps: NDArray[np.int64]
    retransmitted_packets: NDArray[np.int64]

class ObservedFlow:
    """What an engine's probe records of a flow that is sent, and under which names."""

    def __init__(
        self,
        source: int,
        destination: int,
        plane: int,
        *,
        message: bool = True,
        telemetry: bool = False,
    ) -> None: ...

class FlowGenerator:
    """WRITEs of a host that start at given times, each over a queue pair of its own that lives as long as the flow.

    Both ends of a flow are told of it, each by its own generator: `place` is what add_port() returned, sizes are 1 byte
    to 2 GiB, starts count from the run's. The executor's listener is told of the end.
    """

    def __init__(self, nic: Nic, executor: ScheduleExecutor) -> None: ...
    def add_port(
        self,
        port: int,
        *,
        destination_mac: str,
        congestion_control: str | Callable[[int], CongestionControl],
        line_rate_bps: int = ...,
        base_round_trip_ps: int = ...,
        nearest_round_trip_ps: int = 0,
        nearest_hops: int = 0,
        hop_round_trip_ps: int = 0,
        int_rates_bps: Sequence[int] = ...,
        parameters: Mapping[str, float] = {},
        preset: str = "",
        path_choice: Callable[[int, int], PathChoice | None] | None = None,
        retransmission: str = "go-back-n",
        retransmission_timeout_ps: int,
        reordering_window_ps: int = 0,
        ack_interval_packets: int = 1,
        cnp_interval_ps: int = 50_000_000,
        path_mtu_bytes: int,
        telemetry: bool = False,
        as_lengths: bool = False,
    ) -> int:
        """Say how queue pairs of a port are made; returns the place by which flows name it.

        congestion_control: a name, with its parameters and the path's properties (make_congestion_control), or what
        makes one for each flow, given the size of its full frames; path_choice makes one from the number of a flow's
        queue pair and that size; as_lengths: packets carry their payload as a length.
        """
    def add_sent(
        self,
        flow: int,
        start_ps: int,
        place: int,
        peer_ip: str,
        queue_pair: int,
        remote_queue_pair: int,
        size_bytes: int,
        remote_address: int,
        rkey: int,
        *,
        observed: ObservedFlow = ...,
    ) -> None: ...
    def add_received(
        self,
        flow: int,
        start_ps: int,
        place: int,
        peer_ip: str,
        queue_pair: int,
        remote_queue_pair: int,
        size_bytes: int,
    ) -> None: ...
    def start(self, start_ps: int = 0, *, run: int = 0) -> None:
        """Start at start_ps (now, if that is past). Raises RuntimeError the second time.

        What is recorded of its messages bears the number of the run, and as their step that of the flow.
        """
    def cancel(self) -> None:
        """End the run, if it has not ended; its queue pairs go."""
    def status(self) -> RunStatus:
        """The run's state; nodes are flows, sent (and acknowledged) and received."""
    def records(self) -> FlowRecords:
        """Columns of the flows sent and acknowledged so far, in that order; times are emulated picoseconds."""
    def counters(self) -> RcCounters:
        """Sums over all its queue pairs, those that are gone included."""
    def reset_counters(self) -> None: ...

class AggregationClient(QueuePair):
    """A worker of an in-network aggregation job. All workers must post the same reductions in the same order.

    Contributions go to `destination_ip` by way of `destination_mac`; results come to `group_ip`. `slot_count` is
    the window in messages. Raises ValueError for parameters out of range or a group that is taken.
    """

    def __init__(
        self,
        nic: Nic,
        port: int,
        completions: CompletionHandler,
        *,
        job_id: int,
        epoch: int,
        q_key: int,
        rank: int,
        rank_count: int,
        slot_count: int,
        destination_mac: str,
        destination_ip: str,
        group_ip: str,
        retransmission_timeout_ps: int,
        source_udp_port: int = 0xC000,
        timeout_backoff_limit: int = 5,
        retry_limit: int = 30,
        early_retransmit_distance: int = 16,
    ) -> None: ...
    def stats(self) -> AggregationStats: ...
    def reset_stats(self) -> None: ...

def block_exponent(block: NDArray[np.float32]) -> int:
    """Smallest e with |x| < 2^e for all elements, -149 for zeros. Raises ValueError for NaN and infinity."""

def quantise_block(block: NDArray[np.float32], exponent: int, rank_count: int) -> NDArray[np.int32]:
    """Integers that `rank_count` ranks can add without overflow. All |x| < 2^exponent."""

def dequantise_block(sums: NDArray[np.int32], exponent: int, rank_count: int) -> NDArray[np.float32]:
    """Floats that sums of quantised blocks stand for."""

# --- switch: the v1model runtime (python/bind_switch.cpp) ---

NativeKey = tuple[bytes, bytes, bytes, bytes, int]
MeterRates = tuple[int, int, int, int, int | None]
"""Committed rate and burst, peak rate and burst, excess burst of a single-rate meter (None: two rates)."""
MeterStateTuple = tuple[MeterRates | None, list[tuple[int, int]], bytes]
"""Configuration, (packets, bytes) counted as green, yellow and red, and the buckets, opaque."""

def switch_abi() -> dict[str, int]:
    """Offsets ("Struct.member"), sizes and constants that generated code shares with the switch runtime."""

def switch_runtime_symbols() -> dict[str, int]:
    """Addresses of the functions that generated code may call, by name."""

class SwitchProgram:
    """A compiled program; `functions` are addresses of its entry points, `code` is kept alive with it."""

    def __init__(
        self,
        *,
        functions: dict[str, int],
        code: object,
        state_bytes: int,
        metadata_offset_bytes: int,
        metadata_bytes: int,
        max_headers_bytes: int,
        max_digest_bytes: int,
        max_action_data_bytes: int,
        tables: list[dict[str, object]],
        action_profile_count: int,
        registers_bytes: int,
        counter_count: int,
        meter_count: int,
        value_set_count: int,
        log_formats: list[str],
    ) -> None: ...

class Switch(Node):
    """A v1model switch. Tables, profiles and arrays are addressed by index; `weft.switch.native` knows the names.

    A match is (value, mask, low, high, priority) as bytes of the table's key; an action is (kind, id, data) with
    kind 0 action, 1 member, 2 group. ValueError for depth_unit or time_unit; RuntimeError without a program.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        name: str,
        cpu_port: int = 510,
        drop_port: int = 511,
        depth_unit: str = "cells",
        time_unit: str = "ns",
    ) -> None: ...
    def load(self, program: SwitchProgram) -> None: ...
    def draw_from(self, stream: Rng) -> None:
        """Draw the program's random numbers from a stream from now on."""
    def attach_port(self, port: int, transmit_port: TransmitPort) -> None:
        """Packets for `port` go to `transmit_port`; the egress pipeline runs as they leave its queue."""

    def receive(self, port: int, data: bytes) -> None: ...
    def process(self, port: int, data: bytes) -> list[tuple[int, bytes]]:
        """Run a packet through both pipelines at once; what leaves."""

    def process_repeatedly(self, port: int, packets: Sequence[bytes], count: int) -> int:
        """`count` packets, the given ones over and over; how many left."""

    def packet_out(self, data: bytes) -> None: ...
    def wait_event(self, timeout_s: float) -> tuple[str, int, bytes, int] | None:
        """("packet_in" or "digest", learn list, bytes, time in ps), or None when the time is over."""
    def set_event_listener(self, listener: Callable[[], object] | None) -> None:
        """Call listener() from the engine whenever wait_event() has one more; None ends that."""

    def drops(self) -> dict[str, int]: ...
    @staticmethod
    def drop_reasons() -> list[str]:
        """Names of the reasons by number."""
    def reset_drops(self) -> None: ...
    @property
    def received_packets(self) -> int: ...
    def replace_code(self, program: SwitchProgram) -> None:
        """Go on with other code for the same program. ValueError if its shape is another."""
    def start_trace(self, packets: int, port: int | None) -> None:
        """Trace the next packets (received on a port); see engine/switch/trace.hpp."""
    def stop_trace(self) -> None: ...
    def take_trace(self) -> bytes:
        """All records so far, each a SwitchTrace::Head and its data."""
    @property
    def trace_packets_missed(self) -> int: ...
    def set_logging(self, enabled: bool) -> None: ...
    def take_log(self) -> list[str]: ...
    class PreparedKey:
        """A table and a match in it, for any switch that runs the program they were prepared for."""

    class PreparedAction:
        """An action with its data."""

    def prepare_key(
        self,
        table: int,
        value: bytes,
        mask: bytes,
        low: bytes,
        high: bytes,
        priority: int,
        max_size: int,
    ) -> PreparedKey: ...
    def prepare_action(self, number: int, data: bytes) -> PreparedAction: ...
    def insert_prepared(self, entries: Sequence[object]) -> int:
        """Insert entries, each a tuple of a prepared key and action, in a list; how many until one that is refused."""

    def table_insert(
        self,
        table: int,
        value: bytes,
        mask: bytes,
        low: bytes,
        high: bytes,
        priority: int,
        kind: int,
        id: int,
        data: bytes,
        idle_timeout_ns: int,
        max_size: int = ...,
    ) -> bool: ...
    def table_modify(
        self,
        table: int,
        value: bytes,
        mask: bytes,
        low: bytes,
        high: bytes,
        priority: int,
        kind: int,
        id: int,
        data: bytes,
        idle_timeout_ns: int,
    ) -> bool: ...
    def table_delete(
        self, table: int, value: bytes, mask: bytes, low: bytes, high: bytes, priority: int
    ) -> bool: ...
    def table_set_default(self, table: int, kind: int, id: int, data: bytes) -> None: ...
    def table_size(self, table: int) -> int: ...
    def entry_action(
        self, table: int, key: tuple[bytes, bytes, bytes, bytes, int] | None
    ) -> tuple[int, int, bytes, int]: ...
    def table_entries(
        self, table: int
    ) -> list[tuple[bytes, bytes, bytes, bytes, int, int, int, bytes, int]]: ...
    def entry_idle_ns(self, table: int, key: NativeKey | None) -> int: ...
    def entry_counter(self, table: int, key: NativeKey | None) -> tuple[int, int]: ...
    def set_entry_counter(self, table: int, key: NativeKey | None, packets: int, bytes: int) -> None: ...
    def entry_meter(self, table: int, key: NativeKey | None) -> MeterStateTuple: ...
    def set_entry_meter(self, table: int, key: NativeKey | None, config: MeterRates | None) -> None: ...
    def restore_entry_meter(self, table: int, key: NativeKey | None, state: MeterStateTuple) -> None: ...
    def member_insert(self, profile: int, id: int, action: int, data: bytes) -> bool: ...
    def member_modify(self, profile: int, id: int, action: int, data: bytes) -> None: ...
    def member_delete(self, profile: int, id: int) -> bool: ...
    def group_insert(
        self, profile: int, id: int, members: list[tuple[int, int, int]], is_random: bool
    ) -> bool: ...
    def group_modify(self, profile: int, id: int, members: list[tuple[int, int, int]]) -> None: ...
    def group_delete(self, profile: int, id: int) -> bool: ...
    def profile_sizes(self, profile: int) -> tuple[int, int]: ...
    def set_watch_port_up(self, profile: int, port: int, up: bool) -> None: ...
    def registers_read(self, offset: int, stride: int, cell_bytes: int, count: int) -> bytes: ...
    def registers_fill(self, offset: int, stride: int, cell: bytes, count: int) -> None: ...
    def counters_read(self, first: int, count: int) -> list[tuple[int, int]]: ...
    def counter_write(self, index: int, packets: int, bytes: int) -> None: ...
    def meter_read(self, index: int) -> MeterStateTuple: ...
    def meter_write(self, index: int, config: MeterRates | None) -> None: ...
    def meter_restore(self, index: int, state: MeterStateTuple) -> None: ...
    def value_set_write(self, index: int, members: list[tuple[bytes, bytes]]) -> None: ...
    def multicast_group_set(self, id: int, replicas: list[tuple[int, int]]) -> None: ...
    def multicast_group_delete(self, id: int) -> bool: ...
    def clone_session_set(
        self, id: int, replicas: list[tuple[int, int]], priority_class: int, packet_length_bytes: int
    ) -> None: ...
    def clone_session_delete(self, id: int) -> bool: ...

# --- what a run is observed by (python/bind_probe.cpp) ---

class Probe:
    """Records what components of an engine tell; one an engine, which owns it. Times in ps, sizes in bytes.

    Rows beyond row_limit of a table are counted and not kept. Raises RuntimeError if the engine has a probe.
    """

    def __init__(self, engine: Engine, *, row_limit: int = 20_000_000) -> None: ...
    @staticmethod
    def of(port: TransmitPort) -> Probe:
        """Return the probe of the port's engine; makes it if there is none."""
    def watch(self, component: TransmitPort | Link | Switch, place: int) -> None:
        """Record drops and pauses of the component, under this number for the place."""
    def start_sampling(self, interval_ps: int) -> None:
        """Sample ports at every multiple of the interval. ValueError below 1; RuntimeError if it has begun."""
    def sample(self, port: TransmitPort, place: int) -> None:
        """Make a port's queues and what it has sent series of a place. RuntimeError before start_sampling."""
    def take(self, until_ps: int = 0) -> dict[str, dict[str, NDArray[np.int64]]]:
        """Hand over all that was recorded since the last call: columns by name, by table.

        Ports are sampled once more at until_ps (the engine's now, if that is later): all events up to it have been
        served.

        drops: time_ps, place, reason (a code of `drop_names`), priority_class, size_bytes (0: not told; class -1:
        none). pauses: place, priority_class, begin_ps, end_ps. flows, a message of a queue pair each: source,
        destination, plane, run, step, size_bytes, start_ps (posted), end_ps (acknowledged), retransmitted_packets,
        status (index in `completion_status_names`). telemetry, a row per hop: time_ps, source, destination, plane,
        psn, path_id, hop, rate_code, queue_cells, tx_units, timestamp_ns. steps: rank, run, step, kind (0 write, 1
        wait, 2 reduce, 3 copy, 4 aggregate, 5 delay), peer, plane, size_bytes, start_ps, end_ps. queues, a row
        where a sample differs from the series' last: time_ps, place, priority_class, queue_bytes,
        transmitted_bytes.
        """
    def rows_lost(self) -> dict[str, int]:
        """Rows beyond the limit, by table."""

def drop_names() -> dict[int, str]:
    """Return what the codes in the column `reason` of drops mean."""

def completion_status_names() -> list[str]:
    """Return the names of a completion's status, in the order of their numbers."""
