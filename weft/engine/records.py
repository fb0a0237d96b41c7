"""Types of the dictionaries and tuples that the native module takes and returns.

The engine declares the types of statistics and options (`weft.engine.record_types()`).
"""

from collections.abc import Sequence
from typing import Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

NativeKey = tuple[bytes, bytes, bytes, bytes, int]
"""Value, mask, low, high and priority of a table entry, as bytes of the table's key."""
MeterRates = tuple[int, int, int, int, int | None]
"""Committed rate and burst, peak rate and burst, excess burst of a single-rate meter (None: two rates)."""
MeterStateTuple = tuple[MeterRates | None, list[tuple[int, int]], bytes]
"""Configuration, (packets, bytes) counted as green, yellow and red, and the buckets, opaque."""


class TrafficCounter(TypedDict):
    """Packets and their bytes on the wire."""

    packets: int
    bytes: int


class MissingTraffic(TypedDict):
    """Packets that entered and are nowhere; below 0: packets that came from nowhere."""

    packets: int
    bytes: int


class ConservationCounts(TypedDict):
    """Fate of all packets: entered + resized_bytes = left + dropped + held, or some are missing.

    `entered`: sent (by hosts), from_controller, multicast and cloned (copies by switches), duplicated (by faults),
    flow_control (made by MACs), injected (by callers). `left`: delivered (to queue pairs), to_controller, flow_control
    (taken by MACs), collected (by callers). `dropped`: by name (`drop_names`), without zeros. Held are
    `queued`, `in_flight` on links, and `in_switches`, within pipelines that take time.
    """

    entered: dict[str, TrafficCounter]
    left: dict[str, TrafficCounter]
    dropped: dict[str, TrafficCounter]
    resized_bytes: int
    queued: TrafficCounter
    in_flight: TrafficCounter
    in_switches: TrafficCounter
    missing: MissingTraffic


class HopLatency(TypedDict):
    """A hop of a path: sums over all stacks; `counts` are by the buckets of `hop_latency_edges_ns`."""

    latency_ns: int
    queue_cells: int
    counts: list[int]


class PathLatencies(TypedDict):
    """Telemetry of packets to a rank over a plane, by hop. `path_id` is the XOR of its switches' ids."""

    peer: int
    plane: int
    path_id: int
    overflow: bool
    stacks: int
    hops: list[HopLatency]


class Lateness(TypedDict):
    """How far behind its time events were served."""

    count: int
    max_ps: int
    p50_ps: int
    p99_ps: int


class IntHopFields(TypedDict, total=False):
    """One switch's stamp."""

    rate_code: int
    timestamp_ns: int
    tx_units: int
    queue_cells: int


class TelemetryFields(TypedDict, total=False):
    """An INT stack."""

    echo: bool
    overflow: bool
    hop_count: int
    path_id: int
    hops: list[IntHopFields]


class BthFields(TypedDict, total=False):
    """The base transport header."""

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
    """The datagram extended transport header."""

    q_key: int
    source_qp: int


class RethFields(TypedDict, total=False):
    """The RDMA extended transport header."""

    virtual_address: int
    rkey: int
    length_bytes: int


class AtomicEthFields(TypedDict, total=False):
    """The atomic extended transport header."""

    virtual_address: int
    rkey: int
    swap_or_add: int
    compare: int


class AethFields(TypedDict, total=False):
    """The ACK extended transport header."""

    syndrome: int
    msn: int


class AggregationFields(TypedDict, total=False):
    """The header of in-network aggregation (docs/spec/aggregation.md)."""

    kind: int
    operation: int
    job_id: int
    epoch: int
    slot: int
    round: int
    rank: int
    lane_count: int
    data_type: int
    flags: int
    destination: int


class MethFields(TypedDict, total=False):
    """The message extended transport header of MRC."""

    rqmsn: int
    msn: int


class TsethFields(TypedDict, total=False):
    """The requestor's timestamp."""

    tx_timestamp: int
    tsr: bool
    ftype: int


class SethFields(TypedDict, total=False):
    """A reliability SACK."""

    m: int
    pr: bool
    ack_psn_offset: int
    entropy: int
    spdcid: int
    dpdcid: int
    cack_psn: int
    cc_type: int
    cc_flags: int
    mpr: int
    sack_offset: int
    sack_bitmap: int


class CcStateFields(TypedDict, total=False):
    """The congestion control state that follows a SACK."""

    tx_timestamp: int
    ooo_count: int
    restore_cwnd: bool
    rcv_cwnd_pen: int
    rcvd_units: int


class NethFields(TypedDict, total=False):
    """A reliability NACK."""

    nack_reason: int
    vendor_info: int
    entropy: int
    spdcid: int
    dpdcid: int
    nack_psn: int
    cc_type: int
    cc_flags: int
    tx_timestamp: int


class PethFields(TypedDict, total=False):
    """A reliability probe."""

    vendor_info: int
    probe_id: int
    spdcid: int
    dpdcid: int
    tx_timestamp: int
    tsr: bool
    ftype: int


class ErthFields(TypedDict, total=False):
    """An endpoint request."""

    op: int
    vendor_info: int
    port_status_mask: int
    tx_timestamp: int
    tsr: bool
    ftype: int


class EethFields(TypedDict, total=False):
    """An endpoint response."""

    op: int
    tx_timestamp: int


class MrcFields(TypedDict, total=False):
    """Headers that an MRC packet has in addition to its RETH, immediate or AETH, by its opcode.

    `trimmed` is the parser's: a switch cut the payload off. `entropy` is the packet's entropy value: the UDP source
    port is its upper half, the low 16 bits of the flow label are its lower half (0 with IPv4).
    """

    retransmission: bool
    entropy: int
    trimmed: bool
    meth: MethFields
    tseth: TsethFields
    seth: SethFields
    cc_state: CcStateFields
    neth: NethFields
    peth: PethFields
    erth: ErthFields
    eeth: EethFields


class RoceHeaders(TypedDict, total=False):
    """Everything of a packet above its payload; MAC and IP addresses are text.

    `telemetry` is the INT shim; `identification` and `dont_fragment` are IPv4's, `flow_label` is IPv6's. A packet has
    the extension headers (`deth` to `mrc`) of its opcode.
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
    mrc: MrcFields


class Completion(TypedDict):
    """How a posted request, or a receive, ended. `source_queue_pair`: of a datagram, that has sent it."""

    work_id: int
    kind: str
    status: str
    fault: str
    queue_pair: int
    length_bytes: int
    immediate: int | None
    source_queue_pair: int | None
    posted_ps: int
    completed_ps: int


class RunStatus(TypedDict):
    """How far a run is."""

    state: Literal["waiting", "running", "finished", "failed", "cancelled"]
    started_ps: int | None
    finished_ps: int | None
    nodes_done: int
    node_count: int
    error: str


class RunWrites(TypedDict):
    """Columns of the WRITEs of a run."""

    node: NDArray[np.int64]
    posted_ps: NDArray[np.int64]
    completed_ps: NDArray[np.int64]
    retransmitted_packets: NDArray[np.int64]


class FlowRecords(TypedDict):
    """Columns of flows."""

    flow: NDArray[np.int64]
    started_ps: NDArray[np.int64]
    finished_ps: NDArray[np.int64]
    retransmitted_packets: NDArray[np.int64]


class ServiceRecords(TypedDict):
    """Columns of requests to a service: what each has found in its counter, and how often it was tried."""

    started_ps: NDArray[np.int64]
    finished_ps: NDArray[np.int64]
    value: NDArray[np.uint64]
    attempts: NDArray[np.int64]


class EchoRecords(TypedDict):
    """Columns of ICMP echo requests; a round trip of 0 is none. `hop_limit` is what is left of the answer's."""

    sent_ps: NDArray[np.int64]
    round_trip_ps: NDArray[np.int64]
    outcome: list[str]
    hop_limit: NDArray[np.int64]
    responder: list[str]


class ParameterRecords(TypedDict):
    """Columns of requests to a parameter store: the block's version, who wrote it, whether a switch has answered."""

    started_ps: NDArray[np.int64]
    finished_ps: NDArray[np.int64]
    block_version: NDArray[np.int64]
    writer: NDArray[np.int64]
    writer_sequence: NDArray[np.int64]
    cached: NDArray[np.int64]


class PathOptions(TypedDict):
    """The path of a flow, where a congestion control is given by name."""

    line_rate_bps: NotRequired[int]
    base_round_trip_ps: NotRequired[int]
    nearest_round_trip_ps: NotRequired[int]
    nearest_hops: NotRequired[int]
    hop_round_trip_ps: NotRequired[int]
    sprayed: NotRequired[bool]
    int_rates_bps: NotRequired[Sequence[int]]


class PathArguments(TypedDict):
    """Path properties given to a congestion control at its start; the last five are optional."""

    line_rate_bps: int
    base_round_trip_ps: int
    frame_bytes: int
    nearest_round_trip_ps: NotRequired[int]
    nearest_hops: NotRequired[int]
    hop_round_trip_ps: NotRequired[int]
    sprayed: NotRequired[bool]
    int_rates_bps: NotRequired[Sequence[int]]
