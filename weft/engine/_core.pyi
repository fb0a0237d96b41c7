"""Types of the native module, made by `make stubs` (engine/python/make_stub.py): do not edit."""

import collections.abc
import typing

import numpy
import numpy.typing
import typing_extensions

from weft.engine.records import (
    AethFields as AethFields,
)
from weft.engine.records import (
    AggregationFields as AggregationFields,
)
from weft.engine.records import (
    AtomicEthFields as AtomicEthFields,
)
from weft.engine.records import (
    BthFields as BthFields,
)
from weft.engine.records import (
    CcStateFields as CcStateFields,
)
from weft.engine.records import (
    Completion as Completion,
)
from weft.engine.records import (
    ConservationCounts as ConservationCounts,
)
from weft.engine.records import (
    DethFields as DethFields,
)
from weft.engine.records import (
    EchoRecords as EchoRecords,
)
from weft.engine.records import (
    EethFields as EethFields,
)
from weft.engine.records import (
    ErthFields as ErthFields,
)
from weft.engine.records import (
    FlowRecords as FlowRecords,
)
from weft.engine.records import (
    HopLatency as HopLatency,
)
from weft.engine.records import (
    IntHopFields as IntHopFields,
)
from weft.engine.records import (
    Lateness as Lateness,
)
from weft.engine.records import (
    MeterRates as MeterRates,
)
from weft.engine.records import (
    MeterStateTuple as MeterStateTuple,
)
from weft.engine.records import (
    MethFields as MethFields,
)
from weft.engine.records import (
    MissingTraffic as MissingTraffic,
)
from weft.engine.records import (
    MrcFields as MrcFields,
)
from weft.engine.records import (
    NativeKey as NativeKey,
)
from weft.engine.records import (
    NethFields as NethFields,
)
from weft.engine.records import (
    ParameterRecords as ParameterRecords,
)
from weft.engine.records import (
    PathArguments as PathArguments,
)
from weft.engine.records import (
    PathLatencies as PathLatencies,
)
from weft.engine.records import (
    PathOptions as PathOptions,
)
from weft.engine.records import (
    PethFields as PethFields,
)
from weft.engine.records import (
    RethFields as RethFields,
)
from weft.engine.records import (
    RoceHeaders as RoceHeaders,
)
from weft.engine.records import (
    RunStatus as RunStatus,
)
from weft.engine.records import (
    RunWrites as RunWrites,
)
from weft.engine.records import (
    ServiceRecords as ServiceRecords,
)
from weft.engine.records import (
    SethFields as SethFields,
)
from weft.engine.records import (
    TelemetryFields as TelemetryFields,
)
from weft.engine.records import (
    TrafficCounter as TrafficCounter,
)
from weft.engine.records import (
    TsethFields as TsethFields,
)

class AggregationStats(typing.TypedDict):
    contributions_sent: int
    """Retransmissions included."""
    retransmitted_packets: int
    """Contributions sent again."""
    timeouts: int
    """Retransmission timeouts."""
    early_retransmissions: int
    """Because results of later messages had come."""
    repeated_messages: int
    """Sent in one more epoch, which a failure began."""
    results_accepted: int
    """Of this job, awaited."""
    ce_marked_packets: int
    """Accepted results that a switch marked."""
    overflowed_messages: int
    """Accepted, with a sum that left its type's range."""
    stale_results: int
    """Not accepted: of a round already finished."""
    foreign_results: int
    """Not accepted: of another job, or with a wrong Q_Key."""
    wrong_epoch_results: int
    """Not accepted."""
    unexpected_results: int
    """Not accepted: of a slot or round nothing was sent for, or not what was asked."""
    invalid_results: int
    """Not accepted: refused by the request."""
    unexpected_packets: int
    """Not a result of an aggregation at all."""
    dropped_in_error: int
    """Arrived after the client had failed."""
    messages_in_flight: int
    """Sent, without their result yet."""
    outstanding_requests: int
    """Posted and not completed."""
    window_messages: float
    """That may be in flight."""
    error: str
    """Why requests fail; "success" as long as they do not."""

class BufferPortStats(typing.TypedDict):
    queue_bytes: list[int]
    """In its queues, by class."""
    ingress: list[IngressStats]
    """Of what came in by it, by class."""

class BufferStats(typing.TypedDict):
    capacity_bytes: int
    """All of it."""
    shared_capacity_bytes: int
    """What no queue or class has for itself."""
    used_bytes: int
    max_used_bytes: int
    shared_used_bytes: int
    class_bytes: list[int]
    """By class."""
    ports: dict[int, BufferPortStats]
    """By number."""

class ClassStats(typing.TypedDict):
    queue_depth_bytes: int
    """Waiting."""
    transmitted: TrafficCounter
    tail_dropped: TrafficCounter
    """Found no memory in the queue."""
    trimmed: TrafficCounter
    """Trimmed as they found none, and the bytes cut off them."""

class ClearToSendStats(typing.TypedDict):
    clearances_sent: int
    """Packets that clear messages to be sent."""
    cleared_messages: int
    """Messages sent that the receiver had cleared."""
    held_messages: int
    """Messages that waited until the receiver did so."""
    clearance_wait_ps: int
    """Time that these waited, summed over messages."""
    clearance_stall_ps: int
    """Time in which any message waited."""

class CreditLaneStats(typing.TypedDict):
    stalls: int
    """How often this port ran out of credit for a frame."""
    stalled_ps: int
    """For how long in all, up to the last change."""
    priority_class: int
    is_stalled: bool
    """Waits for credit."""
    available_blocks: int
    """Credit left, in blocks of 64 bytes."""

class CreditStats(typing.TypedDict):
    updates_sent: int
    """Frames, all lanes together."""
    updates_received: int
    """Frames, all lanes together."""
    lanes: list[CreditLaneStats]
    """Of the classes with credits."""

class EntropyValue(typing.TypedDict):
    value: int
    """UDP source port, and flow label in the low half."""
    plane: int
    """That its packets take."""
    state: str
    """Good, skip, assumed_bad or denied."""
    active: bool
    """False: in reserve, or not to be used."""
    turns: int
    """Times that it was chosen for a packet."""
    outer_destination: str
    """Of the outer IPv6 header; empty: none."""

class EvEvent(typing.TypedDict):
    time_ps: int
    """When the state began."""
    profile_id: int
    """The queue pair's ev_profile_id."""
    queue_pair: int
    """That has the entropy value."""
    peer: str
    """Address of the peer on the entropy value's plane."""
    port: int
    """Of the NIC, for the entropy value's plane."""
    value: int
    """UDP source port, and flow label in the low half."""
    state: str
    """Good or assumed_bad."""
    drop_count: int
    """Events that were dropped between the one before and this one."""

class FastForwardCounts(typing.TypedDict):
    operations: int
    """Collectives and messages that have begun."""
    repeated: int
    """Repeated without packets, from begin to end."""
    resumed: int
    """Begun without packets, and ended with them: another one shared a port."""
    compared: int
    """Run with packets, alone, and compared with an earlier one."""
    deviating: int
    """Of the compared ones, beyond the tolerance."""
    disturbed: int
    """Run with packets, and shared a port."""
    largest_deviation: float
    """Of a compared one, as part of the longest time that a rank took."""
    skipped_packets: int
    """Data packets of repeated operations, between hosts."""
    skipped_bytes: int
    """Their payload."""
    skipped_scale_up_messages: int
    """Messages of repeated operations, within hosts."""
    skipped_scale_up_bytes: int
    """Their bytes."""

class HostLinkStats(typing.TypedDict):
    packets: int
    """That have crossed it, or are about to."""
    bytes: int
    """Of payload in them."""
    busy_ps: int
    """Time that they occupy it."""
    waited_ps: int
    """Sum over them: until others had crossed it."""
    first_ps: int
    """When the first one began."""
    last_ps: int
    """When the last one ends."""

class IngressStats(typing.TypedDict):
    held_bytes: int
    """Held now."""
    max_held_bytes: int
    """The most held."""
    own_used_bytes: int
    """Of that, in memory of its own: headroom, or what credits promise."""
    max_own_used_bytes: int
    """The most used of it."""
    is_paused: bool
    """The far end has been asked to pause."""
    dropped_packets: int
    """Found no memory left."""
    dropped_bytes: int
    """Found no memory left."""

class IpStats(typing.TypedDict):
    received: TrafficCounter
    """Frames that the stack has taken."""
    queued: TrafficCounter
    """Frames that were queued at the NIC."""
    echoes_answered: int
    """ICMP echo requests that were answered."""
    errors_sent: int
    """ICMP errors that were sent."""
    foreign_packets: int
    """Not to this host's MAC or address, nor to a group of its own."""
    malformed_packets: int
    """Cut, or with a header that makes no sense."""
    bad_checksum_packets: int
    """With a wrong checksum."""
    fragment_packets: int
    """Parts of a packet; the stack puts none together."""
    unknown_packets: int
    """Of an EtherType or protocol that nobody has registered for."""
    closed_port_packets: int
    """To a UDP port that nobody listens at."""
    no_route_packets: int
    """Not sent: no route, or no source address of that IP version."""
    too_big_packets: int
    """Not sent: larger than the link's MTU."""
    queue_full_packets: int
    """Not sent: the queue at the NIC was full."""
    unresolved: TrafficCounter
    """Not sent: nobody has answered for the next hop's address."""
    neighbours_evicted: int
    """Neighbours that were forgotten because there were too many."""
    neighbours_changed: int
    """Messages that gave a known neighbour another MAC."""
    neighbours_refused: int
    """Messages that nothing was learned from: another MAC of a static neighbour, or in the name of this host or a
    group."""

class LinkRetryStats(typing.TypedDict):
    lost_packets: int
    """Did not arrive, or with a wrong bit, and were kept."""
    lost_messages: int
    """ACK or NACK of the far end that did not arrive whole."""
    nacks: int
    """Of the far end."""
    timeouts: int
    """The replay timer ran out."""
    replays: int
    """Times that the port began to send again."""
    replayed: TrafficCounter
    """Frames sent again, each time that they were."""
    replaying_ps: int
    """Time for which the port sent frames again."""
    waiting_ps: int
    """Time for which the port waited, as the buffer was full."""
    largest_buffer_bytes: int
    """Most that waited for an acknowledgement."""
    given_up: TrafficCounter
    """Frames that the link has given up, and counts as lost."""

class LinkStats(typing.TypedDict):
    delivered_packets: int
    """Handed to the far end."""
    delivered_bytes: int
    """Handed to the far end."""
    lost_packets: int
    """By a fault."""
    lost_bytes: int
    """By a fault."""
    corrupted_packets: int
    """Dropped on arrival for a wrong bit."""
    corrupted_bytes: int
    """Dropped on arrival for a wrong bit."""
    cut: TrafficCounter
    """On the link as it failed."""
    duplicated_packets: int
    """By a fault."""
    delayed_packets: int
    """By a fault."""

class MrcCounters(typing.TypedDict):
    trim_nacks_sent: int
    """For packets whose payload a switch cut off."""
    other_nacks_sent: int
    """For packets beyond the window."""
    trim_nacks_received: int
    """For packets whose payload a switch cut off."""
    other_nacks_received: int
    """For another reason."""
    probes_sent: int
    """Reliability probes."""
    probes_answered: int
    """SACKs that answer our probes."""
    probes_received: int
    """Of the peer."""
    evs_to_good: int
    """Times that an entropy value became good again."""
    evs_to_skip: int
    """Times that an entropy value was to be passed over once."""
    evs_to_assumed_bad: int
    """Times that an entropy value's path was taken for dead."""

class MrcEndpointCounters(typing.TypedDict):
    port_updates_sent: int
    """Requests that tell peers which ports are up."""
    port_updates_confirmed: int
    """By a response of the peer."""
    port_updates_received: int
    """Requests by which peers tell which ports are up."""
    ev_probes_sent: int
    """Requests that probe an entropy value."""
    ev_probes_answered: int
    """By a response of the probed peer."""
    ev_probes_expired: int
    """That nobody has answered within the retransmission timeout."""
    ev_events_dropped: int
    """That nobody had taken when too many were waiting."""
    ev_probes_received: int
    """Requests by which peers probe an entropy value."""
    ev_probe_responses_refused: int
    """That answer no probe of ours, or too late, or from elsewhere."""
    endpoint_packets_refused: int
    """Of hosts that have no queue pair here, or with another opcode or partition key."""

class MrcOptions(typing.TypedDict):
    ev_count: typing.NotRequired[int]
    """Entropy values that packets take in turn, over all planes."""
    ev_backups: typing.NotRequired[int]
    """Entropy values in reserve for those whose path fails."""
    probe_interval_ps: typing.NotRequired[int]
    """Between probes of an entropy value whose path is taken for dead."""
    ev_min_active: typing.NotRequired[int]
    """Entropy values that stay active even if their paths fail."""
    ev_profile_id: typing.NotRequired[int]
    """Of the EV profile that the entropy values are of, named in EV events."""
    ev_event_mask: typing.NotRequired[int]
    """States whose beginning is an EV event: 1 (good) and 2 (assumed bad), or their sum."""
    max_wimm: typing.NotRequired[int]
    """WRITEs with immediate under way at once; further ones, and what follows them, wait."""
    max_wimm_dest: typing.NotRequired[int]
    """Of the peer: one that has more under way fails the connection."""
    mpr: typing.NotRequired[int]
    """Packets under way at once, in units of 128."""
    mpr_dest: typing.NotRequired[int]
    """Of the peer: packets further ahead of the first that is missing are refused."""
    data_dscp: typing.NotRequired[int]
    """Of data that is sent for the first time, of probes."""
    retransmission_dscp: typing.NotRequired[int]
    """Of data that is sent again."""
    control_dscp: typing.NotRequired[int]
    """Of SACKs, NACKs and acknowledgements."""

class NicStats(typing.TypedDict):
    received_packets: int
    """Delivered to a queue pair."""
    received_bytes: int
    """Delivered to a queue pair."""
    not_roce_packets: int
    """Other traffic (ARP, ping), left to the host's kernel or IP stack."""
    dropped: dict[str, int]
    """Packets, by reason."""

class PacketSocketStats(typing.TypedDict):
    received_packets: int
    """From the interface."""
    received_bytes: int
    """From the interface."""
    ring_dropped_packets: int
    """The kernel found the ring full."""
    truncated_packets: int
    """Dropped: longer than a ring slot."""
    transmitted_packets: int
    """Out of the interface."""
    transmitted_bytes: int
    """Out of the interface."""
    oversize_packets: int
    """Dropped: longer than the interface's MTU."""
    runt_packets: int
    """Dropped: shorter than an Ethernet header."""
    unfinished_checksum_packets: int
    """Received with a checksum that the sender left to its adapter (transmit checksum offload is on), and passed
    on: their receiver will refuse them."""
    interface_down_packets: int
    """Dropped."""
    no_buffer_packets: int
    """Dropped: the kernel had no memory."""
    interface_dropped_packets: int
    """Dropped by the interface after the kernel had taken them: it was not active yet, or the receiver's backlog
    was full."""
    send_error_packets: int
    """Dropped for any other reason."""

class ParameterStoreCounters(typing.TypedDict):
    pulls: int
    """Answered, those asked again included."""
    pushes: int
    """Carried out."""
    repeated_pushes: int
    """Answered again."""
    refused_packets: int
    """Of another group, or out of range."""

class PfcClassStats(typing.TypedDict):
    pauses_sent: int
    """Refreshed ones included."""
    resumes_sent: int
    """To the far end."""
    pauses_received: int
    """From the far end."""
    resumes_received: int
    """From the far end."""
    paused_ps: int
    """For how long this port's class was held, up to the last change."""
    is_paused: bool
    """Held by the far end."""

class PfcStormEvent(typing.TypedDict):
    time_ps: int
    priority_class: int
    is_restored: bool
    """The storm was over; else it was detected."""

class PfcWatchdogClassStats(typing.TypedDict):
    storms_detected: int
    """A class was paused for the detection time while packets waited."""
    storms_restored: int
    """A stormed class was not paused for the restoration time."""
    tx_ok_packets: int
    """Sent while their class was stormed."""
    tx_dropped_packets: int
    """Dropped from the queue, or for it, while their class was stormed."""
    rx_ok_packets: int
    """Arrived by the port while their class was stormed, and handed on."""
    rx_dropped_packets: int
    """Arrived by the port while their class was stormed, and dropped."""
    priority_class: int
    is_stormed: bool
    """Now."""

class PfcWatchdogStats(typing.TypedDict):
    classes: list[PfcWatchdogClassStats]
    """Watched ones."""
    events: list[PfcStormEvent]
    """The first 4096, in order of time."""

class PortMacStats(typing.TypedDict):
    received: TrafficCounter
    """All frames."""
    control_taken: TrafficCounter
    """Frames of the MAC's own, which no node sees."""
    unknown_control_packets: int
    """Frames of an unknown opcode."""
    passing: TrafficCounter
    """Received, and not yet at the node."""
    credits: CreditStats | None
    pfc: list[PfcClassStats] | None
    """By class."""
    watchdog: PfcWatchdogStats | None
    """Of PFC."""

class PortStats(typing.TypedDict):
    control_transmitted: TrafficCounter
    """Frames of the MAC."""
    tail_dropped: TrafficCounter
    """Found no memory in the queue, in any class: the port's own capacity, or a shared buffer's threshold."""
    headroom_dropped: TrafficCounter
    """Found no memory left for the ingress port and class: more came than flow control allows for."""
    down_dropped: TrafficCounter
    """Queued at, or sent to, a port that was down."""
    egress_dropped: TrafficCounter
    """By the egress pipeline."""
    trimmed: TrafficCounter
    """Packets trimmed instead of tail-dropped, and the bytes cut off them."""
    trim_dropped: TrafficCounter
    """Trimmed, and then found no memory for trimmed packets either."""
    storm_dropped: TrafficCounter
    """By the PFC watchdog, in a queue that it has found stormed."""
    storm_arrival_dropped: TrafficCounter
    """By the PFC watchdog, as they arrived by the port in a class that it has found stormed."""
    queue_depth_bytes: int
    """Waiting in all classes."""
    queue_depth_packets: int
    """Waiting in all classes."""
    max_queue_depth_bytes: int
    """The most that was left waiting."""
    transmitted: TrafficCounter
    """All frames, those of the MAC included."""
    last_down_drop_ps: int
    """When a packet was last dropped at the port that was down, or -1."""
    last_down_data_drop_ps: int
    """The same of one that carried data, not only an answer or a probe."""
    classes: list[ClassStats]
    """By class."""

class RcCounters(typing.TypedDict):
    data_packets_sent: int
    """Retransmissions included."""
    data_bytes_sent: int
    """Payload, retransmissions included."""
    segments_sent: int
    """That stood for several data packets."""
    packets_sent_in_segments: int
    """Data packets that segments stood for."""
    retransmitted_packets: int
    """Data packets sent again."""
    timeouts: int
    """Retransmission timeouts."""
    sequence_naks_received: int
    """NAKs that name a missing packet."""
    rnr_naks_received: int
    """The receiver was not ready."""
    fatal_naks_received: int
    """NAKs that end the connection."""
    acknowledgements_received: int
    """ACKs."""
    stale_acknowledgements: int
    """For something acknowledged before."""
    invalid_acknowledgements: int
    """For something never sent, or of an unknown syndrome."""
    cnps_received: int
    """Congestion notifications."""
    switch_notifications_received: int
    """Of queues, from switches."""
    stale_switch_notifications: int
    """Of packets that were answered before."""
    data_packets_received: int
    """Accepted; go-back-N: in order."""
    data_bytes_received: int
    """Payload, accepted."""
    duplicate_packets: int
    """Received before."""
    out_of_sequence_packets: int
    """Received behind a gap."""
    out_of_window_packets: int
    """Selective repeat: too far ahead of the gap to be remembered."""
    ce_marked_packets: int
    """That a switch marked (CE)."""
    acknowledgements_sent: int
    """ACKs."""
    sequence_naks_sent: int
    """NAKs that name a missing packet."""
    rnr_naks_sent: int
    """No receive was posted."""
    fatal_naks_sent: int
    """NAKs that end the connection."""
    cnps_sent: int
    """Congestion notifications."""
    wrong_source: int
    """Dropped: not from the address of the connected peer."""
    wrong_partition_key: int
    """Dropped."""
    unexpected_opcode: int
    """Dropped: not a packet for an RC queue pair in this state."""
    dropped_in_error: int
    """Dropped: arrived after the queue pair had failed."""

class RcOptions(typing.TypedDict):
    initial_psn: typing.NotRequired[int]
    """Of the first packet sent, 24 bits."""
    remote_initial_psn: typing.NotRequired[int]
    """Of the first packet that the peer sends, 24 bits."""
    data_class: typing.NotRequired[int]
    """In which data travel."""
    path_mtu_bytes: typing.NotRequired[int]
    """256, 512, 1024, 2048 or 4096 payload bytes a packet."""
    telemetry: typing.NotRequired[bool]
    """Data carry the INT shim, acknowledgements echo it."""
    ack_interval_packets: typing.NotRequired[int]
    """After how many packets an acknowledgement is asked for; it is also with the last of a message and with one
    that closes the window."""
    retransmission: typing.NotRequired[str]
    """Go-back-n or selective-repeat, at both ends."""
    reordering_window_ps: typing.NotRequired[int]
    """Selective repeat: a packet counts as lost if one sent so much later has arrived. Above 0 only where packets
    overtake each other."""
    retransmission_timeout_ps: typing.NotRequired[int]
    """Time without progress after which packets are sent again; above the round trip and, on a real clock, the
    host's jitter."""
    timeout_backoff_limit: typing.NotRequired[int]
    """How often the timeout doubles, 0 to 20."""
    retry_limit: typing.NotRequired[int]
    """Timeouts in a row without progress until the queue pair fails."""
    max_outstanding_reads: typing.NotRequired[int]
    """READs and atomics under way, the same at both ends, 1 to 128."""
    rnr_retry_limit: typing.NotRequired[int]
    """7: for ever, as in the specification."""
    rnr_timer_code: typing.NotRequired[int]
    """How long a peer waits while no receive is posted (table 45): 4 = 40 us."""
    receive_for_immediate: typing.NotRequired[bool]
    """A WRITE with immediate consumes a posted receive, as the specification has it; otherwise it needs none."""
    end_to_end_credits: typing.NotRequired[bool]
    """Acknowledgements say how many receives are posted, and SENDs beyond them wait: at both ends or neither."""
    cnp_interval_ps: typing.NotRequired[int]
    """At most one CNP in this time."""
    line_format: typing.NotRequired[str]
    """None, or ll or ll128: WRITEs travel as lines with flags, the same at both ends."""
    segment_packets: typing.NotRequired[int]
    """Packets in the middle of a long message of lengths that travel as one, 1 to 255."""
    segment_message_bytes: typing.NotRequired[int]
    """Of messages that are at least so long."""

class RcStats(typing.TypedDict):
    data_packets_sent: int
    """Retransmissions included."""
    data_bytes_sent: int
    """Payload, retransmissions included."""
    segments_sent: int
    """That stood for several data packets."""
    packets_sent_in_segments: int
    """Data packets that segments stood for."""
    retransmitted_packets: int
    """Data packets sent again."""
    timeouts: int
    """Retransmission timeouts."""
    sequence_naks_received: int
    """NAKs that name a missing packet."""
    rnr_naks_received: int
    """The receiver was not ready."""
    fatal_naks_received: int
    """NAKs that end the connection."""
    acknowledgements_received: int
    """ACKs."""
    stale_acknowledgements: int
    """For something acknowledged before."""
    invalid_acknowledgements: int
    """For something never sent, or of an unknown syndrome."""
    cnps_received: int
    """Congestion notifications."""
    switch_notifications_received: int
    """Of queues, from switches."""
    stale_switch_notifications: int
    """Of packets that were answered before."""
    data_packets_received: int
    """Accepted; go-back-N: in order."""
    data_bytes_received: int
    """Payload, accepted."""
    duplicate_packets: int
    """Received before."""
    out_of_sequence_packets: int
    """Received behind a gap."""
    out_of_window_packets: int
    """Selective repeat: too far ahead of the gap to be remembered."""
    ce_marked_packets: int
    """That a switch marked (CE)."""
    acknowledgements_sent: int
    """ACKs."""
    sequence_naks_sent: int
    """NAKs that name a missing packet."""
    rnr_naks_sent: int
    """No receive was posted."""
    fatal_naks_sent: int
    """NAKs that end the connection."""
    cnps_sent: int
    """Congestion notifications."""
    wrong_source: int
    """Dropped: not from the address of the connected peer."""
    wrong_partition_key: int
    """Dropped."""
    unexpected_opcode: int
    """Dropped: not a packet for an RC queue pair in this state."""
    dropped_in_error: int
    """Dropped: arrived after the queue pair had failed."""
    in_flight_bytes: int
    """Sent and not acknowledged."""
    outstanding_requests: int
    """Posted and not completed."""
    error: str
    """Why requests fail; "success" as long as they do not."""
    responder_error: str
    """Why what the peer sends is refused."""

class ScaleUpStats(typing.TypedDict):
    sent_messages: int
    """Out of the port."""
    sent_bytes: int
    """Out of the port."""
    received_messages: int
    """Into memory, or requests of READs."""
    received_bytes: int
    """Into memory."""
    refused_messages: int
    """To memory that the receiver has not registered."""
    abandoned_messages: int
    """Whose channel was closed at either end."""
    relayed_messages: int
    """Of the host's other ranks, sent on by the port's NIC."""
    relayed_bytes: int
    """Of data in them."""
    relayed_inside_ps: int
    """Sum over them: from posting until the relay had them."""
    relayed_between_ps: int
    """Sum over them: from then until acknowledged."""

class ServiceCounters(typing.TypedDict):
    requests_sent: int
    """Retransmissions included."""
    answers_accepted: int
    """Awaited."""
    stale_answers: int
    """Not accepted: of a request that has been answered."""
    foreign_answers: int
    """Not accepted: of another group, key, epoch or client."""

class TcpCounters(typing.TypedDict):
    malformed_segments: int
    """With a header that makes no sense, or cut."""
    bad_checksum_segments: int
    """With a wrong checksum."""
    unexpected_segments: int
    """To no connection; a RST answers them."""
    refused_openings: int
    """SYNs to a listener that expects another peer; a RST answers them."""
    not_sent_segments: int
    """That the stack has not taken."""

class TcpFlowRecord(typing.TypedDict):
    flow: int
    sends: bool
    """This end sent it."""
    started_ps: int
    finished_ps: int
    """The last acknowledgement, or the last byte; 0: not yet."""
    bytes: int
    """Acknowledged, or received in order."""
    spoilt_segments: int
    """Received with other bytes than were sent."""
    smoothed_round_trip_ps: int
    sender: TcpSenderCounters
    receiver: TcpReceiverCounters

class TcpReceiverCounters(typing.TypedDict):
    received_segments: int
    """Segments with data within the window."""
    received_bytes: int
    """Bytes of data that were new."""
    duplicate_segments: int
    """Segments with data that held nothing new."""
    out_of_order_segments: int
    """Segments that arrived before others."""
    discarded_segments: int
    """Those of them not kept: one gap too many."""
    marked_segments: int
    """Segments with data that a switch had marked (CE)."""
    marked_bytes: int
    """Bytes of data in them."""
    sent_acknowledgements: int
    """Segments without data that acknowledged."""

class TcpSegmentFields(typing.TypedDict):
    source_port: int
    destination_port: int
    sequence: int
    acknowledgement: int
    window: int
    """As on the wire, not scaled."""
    flags: int
    """FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128."""
    payload_bytes: int
    """The segment's last bytes."""
    maximum_segment_bytes: int | None
    window_scale: int | None
    sack_permitted: bool
    timestamps: tuple[int, int] | None
    """TSval and TSecr."""
    sack_blocks: list[tuple[int, int]]
    """Begin and end."""

class TcpSenderCounters(typing.TypedDict):
    sent_segments: int
    """Segments with data, SYN or FIN, those sent again included."""
    sent_bytes: int
    """Bytes of data in them."""
    retransmitted_segments: int
    """Segments sent again."""
    retransmitted_bytes: int
    """Bytes of data in them."""
    timeouts: int
    """Retransmission timeouts (RFC 6298, section 5)."""
    fast_recoveries: int
    """Losses that acknowledgements showed (RFC 6582; RFC 6675)."""
    tail_probes: int
    """Segments sent because nothing was answered (RFC 8985, section 7)."""
    ecn_reductions: int
    """Reductions of the window because of ECE (RFC 3168, section 6.1.2)."""
    received_acknowledgements: int
    """Segments that acknowledged, after the handshake."""
    received_ecn_echoes: int
    """Those of them with ECE."""
    duplicate_acknowledgements: int
    """Those that showed a segment missing."""
    reported_duplicates: int
    """Those that said that something had arrived twice (RFC 2883)."""
    window_probes: int
    """Probes of a closed window (RFC 9293, section 3.8.6.1)."""

class TcpWindowSamples(typing.TypedDict):
    flow: numpy.typing.NDArray[numpy.int64]
    time_ps: numpy.typing.NDArray[numpy.int64]
    window_bytes: numpy.typing.NDArray[numpy.int64]
    in_flight_bytes: numpy.typing.NDArray[numpy.int64]
    smoothed_round_trip_ps: numpy.typing.NDArray[numpy.int64]
    marked_share: numpy.typing.NDArray[numpy.float64]
    """DCTCP's alpha."""

class UcCounters(typing.TypedDict):
    packets_missing: int
    """That have not come when a later one came."""
    packets_skipped: int
    """Dropped: of a message that had been dropped or whose first is missing."""
    messages_broken: int
    """Dropped: begun, and a packet of them is missing."""
    messages_without_receive: int
    """Dropped: no receive was posted."""
    messages_too_long: int
    """Dropped: SENDs longer than their receive."""
    messages_refused: int
    """Dropped: WRITEs to memory that the peer may not write, or that has gone."""
    messages_malformed: int
    """Dropped: an opcode or a length that does not go on as it began."""

class UdCounters(typing.TypedDict):
    datagrams_sent: int
    bytes_sent: int
    """Payload."""
    datagrams_received: int
    """In a receive."""
    bytes_received: int
    """Payload, in a receive."""
    datagrams_looped: int
    """Sent to the port itself, or to a group of which it is a member."""
    loops_without_queue_pair: int
    """Sent to the port itself, where none has that number."""
    loops_dropped: int
    """Of those looped, not delivered before their sender had failed."""
    bad_q_key: int
    """Dropped: another Q_Key than the queue pair's."""
    datagrams_without_receive: int
    """Dropped: no receive was posted."""
    datagrams_too_long: int
    """Dropped: longer than their receive, with the 40 bytes before them."""
    wrong_partition_key: int
    """Dropped."""
    unexpected_opcode: int
    """Dropped: no datagram."""
    dropped_in_error: int
    """Dropped: arrived after the queue pair had failed."""
    error: str
    """Why requests fail; "success" as long as they do not."""

class UdpSinkStats(typing.TypedDict):
    packets: int
    """Datagrams, each counted once."""
    ip_bytes: int
    """Of their IP packets."""
    duplicate_packets: int
    """That had come before."""
    late_packets: int
    """Sent before one that had come already (RFC 4737: reordered)."""
    marked_packets: int
    """With CE in the IP header."""
    foreign_packets: int
    """Of nobody's that this sink serves."""

class UetCounters(typing.TypedDict):
    pdcs_opened: int
    """PDCs that it opened as initiator."""
    pdcs_accepted: int
    """PDCs that a peer opened here."""
    pdcs_closed: int
    """PDCs that it closed as initiator, having been idle."""
    pdcs_given_up: int
    """PDCs of a peer that fell silent."""
    pdcs_reopened: int
    """PDCs that its peer did not have any more."""
    pdc_waits: int
    """Times that it waited because its NIC had no PDC left."""
    trim_nacks_sent: int
    """For packets whose payload a switch cut off."""
    pdc_nacks_sent: int
    """For want of a PDC."""
    order_nacks_sent: int
    """ROD: for packets behind a gap."""
    other_nacks_sent: int
    """For another reason."""
    trim_nacks_received: int
    """For packets whose payload a switch cut off."""
    pdc_nacks_received: int
    """The peer had no PDC left."""
    order_nacks_received: int
    """ROD: for packets behind a gap."""
    other_nacks_received: int
    """For another reason."""
    credits_sent: int
    """RCCC: control packets with credit."""
    credits_received: int
    """RCCC: control packets with credit."""
    credit_waits: int
    """RCCC: times that it had to wait for credit."""
    responses_trimmed: int
    """RUDI: data of READs whose payload was cut off."""
    datagrams_without_receive: int
    """UUD, dropped: no receive was posted."""
    datagrams_too_long: int
    """UUD, dropped: longer than the receive."""
    datagrams_trimmed: int
    """UUD, dropped: a switch cut off their payload."""
    probes_sent: int
    """Control packets that ask what has arrived."""
    probes_received: int
    """Of the peer."""
    wrong_responses: int
    """Dropped: data of READs that it has not asked for."""
    late_packets: int
    """Dropped: of a PDC that is closed, or of none of this queue pair."""

class UetOptions(typing.TypedDict):
    service: typing.NotRequired[str]
    """Rud, rod, rudi or uud, at both ends."""
    max_pdcs: typing.NotRequired[int]
    """PDCs that a NIC holds at once as initiator, and as many as target."""
    pdc_idle_ps: typing.NotRequired[int]
    """An initiator closes its PDC after so long with nothing to do."""
    receiver_credits: typing.NotRequired[bool]
    """RCCC: initiators send what their targets have granted."""
    advance_bytes: typing.NotRequired[int]
    """RCCC: of a new PDC that need no credit."""
    data_dscp: typing.NotRequired[int]
    """Of data that is sent for the first time, of probes."""
    retransmission_dscp: typing.NotRequired[int]
    """Of data that is sent again."""
    control_dscp: typing.NotRequired[int]
    """Of ACKs and NACKs."""

class WaitingFrom(typing.TypedDict):
    priority_class: int
    """It is queued in."""
    ingress_port: int
    """Of the switch, 65535 for none."""
    lane: int
    """It came in; 255 where that is not known."""
    waiting: TrafficCounter

class Rng:
    """A seeded random stream (xoshiro256++)."""
    def below(self, bound: int) -> int:
        """Uniform integer in [0, bound). Raises ValueError for 0."""
    def next_u64(self) -> int: ...
    def uniform(self) -> float:
        """Uniform in [0, 1)."""

class EngineLock:
    """Holds an engine still: `with engine.lock(): ...`."""
    def __enter__(self) -> None: ...
    def __exit__(self, *args: object) -> None: ...

class Engine:
    """A clock and its event queue; owns the components made for it, which live as long as it does.

    `Engine(seed=1)` has a virtual clock and runs as fast as it can; `Engine.real_clock(...)` is paced by
    CLOCK_MONOTONIC. All times are int picoseconds of emulated time. At equal times arrivals from links are served
    first, in the order of the links' connecting, then events in the order in which they were scheduled. Every method
    may be called from any thread. `Partitions.add()` makes an engine that is run together with others.
    """
    @staticmethod
    def real_clock(*, epoch_ns: int | None = None, dilation: float = 1.0, seed: int = 0) -> Engine:
        """An engine whose time is (CLOCK_MONOTONIC - epoch_ns) / dilation; epoch_ns None means now.

        Raises ValueError unless dilation is above 0.
        """
    def __init__(self, *, seed: int = 0) -> None: ...
    def inject(self, node: Node, port: int, data: bytes, time_ps: int | None = None) -> None:
        """Have node receive a packet at its port at time_ps (None: now)."""
    def lateness(self) -> Lateness:
        """How far behind its time each event of a real clock was served, in emulated picoseconds."""
    def lock(self) -> EngineLock: ...
    def packet_conservation(self) -> ConservationCounts:
        """What became of all packets so far. Raises RuntimeError on a real clock, and for one of several partitions."""
    def request_stop(self) -> None:
        """Make the run in progress return after the event being served (of partitions: its window)."""
    def reset_lateness(self) -> None: ...
    def run(self) -> None:
        """Serve events until there are none. Raises RuntimeError on a real clock."""
    def run_for(self, duration_ps: int) -> None: ...
    def run_until(self, time_ps: int) -> None:
        """Serve all events up to and including time_ps; now_ps is then time_ps."""
    def schedule_at(self, time_ps: int, callback: collections.abc.Callable[[], object]) -> None:
        """Call callback() at time_ps (at once if that is past). What it raises, the run raises."""
    def start(self, *, realtime_priority: int = 0) -> None:
        """Serve events in a thread of the engine's own. Raises RuntimeError on a virtual clock.

        With a realtime priority (1 to 99) the thread goes before all ordinary ones, so that it is late less
        often. That takes CAP_SYS_NICE; raises PermissionError without.
        """
    def stop(self) -> None:
        """End the thread. Raises what an event raised in it. Does nothing when there is none."""
    def stream(self, name: str) -> Rng:
        """A random stream that depends on the engine's seed and the name only."""
    @property
    def dilation(self) -> float | None: ...
    @property
    def epoch_ns(self) -> int | None: ...
    @property
    def events_served(self) -> int: ...
    @property
    def failure(self) -> str | None:
        """Why the thread ended by itself, if it did."""
    @property
    def failure_fd(self) -> int:
        """A descriptor that is readable while there is a failure. Raises RuntimeError on a virtual clock."""
    @property
    def is_real(self) -> bool: ...
    @property
    def live_packets(self) -> int:
        """Packets that exist at this moment, in queues, on links, in nodes; for one of several partitions without those
        that come from others and are still on links.
        """
    @property
    def now_ps(self) -> int:
        """Time of the event being served; between events of a real clock, the clock's time."""
    @property
    def running(self) -> bool:
        """start() was called and stop() not yet."""
    @property
    def seed(self) -> int: ...

class Timer:
    """Calls callback() when it fires; cancelled when it is garbage."""
    def __init__(self, engine: Engine, callback: collections.abc.Callable[[], object]) -> None: ...
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
    def clear(self) -> None: ...
    @property
    def packets(self) -> list[tuple[int, int, bytes]]:
        """(time_ps, port, bytes) of each packet since the start or clear()."""
    @property
    def received_bytes(self) -> int: ...
    @property
    def received_packets(self) -> int:
        """Total; clear() does not reset it."""

class PcapWriter:
    """A capture file with nanosecond stamps of emulated time. Raises OSError if it can't be written.

    pcapng where `path` ends so, else pcap, which has no room for directions and for what the interface is. Frames of
    time 0 are dated `origin_ns`. With `without_shims` IP frames are written as if they had been sent without Weft's
    shims (docs/spec/frames.md).
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
        without_shims: bool = False,
    ) -> None: ...
    def close(self) -> None:
        """Raises OSError, once, if what was written is not all in the file."""
    def flush(self) -> None: ...
    @property
    def error(self) -> int:
        """Why the file is incomplete, as an errno; 0 as long as nothing has failed."""
    @property
    def packets_failed(self) -> int: ...
    @property
    def packets_written(self) -> int: ...
    @property
    def path(self) -> str: ...

class OtherProcessFailed(RuntimeError):
    """An event of another process's partition has raised; that process has the exception."""

class PartitionsLock:
    """Holds all partitions still: `with partitions.lock(): ...`."""
    def __enter__(self) -> None: ...
    def __exit__(self, *args: object) -> None: ...

class Partitions:
    """Engines of one virtual clock that meet only through links, run by one thread or several.

    In windows of the shortest delay of a link between two of them, each is served alone; the outcome is the same for
    every number of workers. Components of one partition must not be touched by events of another. All times are int
    picoseconds. Every method may be called from any thread, but not from events of the partitions.
    """
    def __init__(self, *, seed: int = 0, workers: int = 1) -> None:
        """Raises ValueError for a number of workers outside 1 to 256."""
    def __len__(self) -> int: ...
    def add(self, *, group: int | None = None) -> Engine:
        """A new partition's engine, which is not run by itself.

        Partitions of one `group` (0 or more) have their traffic with each other, as the switches of a plane do: one
        worker serves them all, where groups can be shared out evenly.
        """
    def after_events(self, events: int, callback: collections.abc.Callable[[], object]) -> None:
        """Call callback() between windows, once so many more events have been served.

        There is one such call at a time; a new one replaces it. The moment depends on windows, so it must not change
        any outcome.
        """
    def agree_on_links(self) -> None:
        """Let links count what has arrived damaged in other processes. All processes must call it."""
    def distribute(
        self, process: int, process_count: int, exchange: collections.abc.Callable[[list[bytes]], list[bytes]]
    ) -> None:
        """Have this process serve its share of the partitions.

        Every process builds the same run and drives it alike. `exchange(messages)` is called between windows: it
        gives every process its message (bytes, by number; this process's own is empty) and returns theirs.
        Raises ValueError for a process that is not among the count, RuntimeError after the first run.
        """
    def forget_scheduled(self) -> None:
        """Drop all calls that have not been made, and what they keep alive. RuntimeError: within a run."""
    def lateness(self) -> Lateness:
        """Nothing: a virtual clock is never late."""
    def lock(self) -> PartitionsLock: ...
    def next_event_ps(self) -> int | None:
        """Time of the next event or call; None without one. Not within a run."""
    def packet_conservation(self) -> ConservationCounts:
        """What became of all packets of all partitions so far. All processes of a distributed run must call it."""
    def process_of(self, engine: Engine) -> int:
        """Which process serves a partition's engine; 0 in a run that is not distributed."""
    def request_stop(self) -> None:
        """Make the run in progress return after the present window or callback."""
    def reset_lateness(self) -> None: ...
    def run(self) -> None:
        """Serve events until there are none. Raises what an event raised, when its window has been served."""
    def run_for(self, duration_ps: int) -> None: ...
    def run_until(self, time_ps: int) -> None:
        """Serve all events up to and including time_ps; now_ps is then time_ps."""
    def schedule_at(self, time_ps: int, callback: collections.abc.Callable[[], object]) -> None:
        """Call callback() at time_ps (at once if that is past), after all events of that time; it may touch all."""
    def shares(self) -> list[list[int]]:
        """Which partitions each worker serves, by number in the order in which they were added."""
    @property
    def events_served(self) -> int: ...
    @property
    def live_packets(self) -> int:
        """Packets that exist at this moment, in queues, on links, in nodes."""
    @property
    def now_ps(self) -> int:
        """Up to when everything has been served."""
    @property
    def seed(self) -> int: ...
    @property
    def window_ps(self) -> int:
        """How long windows are: the shortest delay of a link between partitions, at most a microsecond.

        What an event reports to Python (a listener's call) arrives that much later.
        """
    @property
    def windows_served(self) -> int: ...
    @property
    def workers(self) -> int:
        """Threads that serve a run, the caller's included; may be set between runs."""
    @workers.setter
    def workers(self, arg1: int) -> None: ...

class SharedBuffer:
    """A switch's packet memory. reserved_bytes and alpha are by class (eight of each).

    Raises ValueError for a capacity of 0 or an alpha that is not above 0.
    """
    def __init__(
        self,
        engine: Engine,
        *,
        capacity_bytes: int,
        reserved_bytes: collections.abc.Sequence[int] = [0, 0, 0, 0, 0, 0, 0, 0],
        alpha: collections.abc.Sequence[float] = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
    ) -> None: ...
    def add_port(self, number: int) -> None:
        """Add a port and its queues' reservations. Raises ValueError when they do not fit."""
    def reset_stats(self) -> None: ...
    def stats(self) -> BufferStats: ...
    def threshold_bytes(self, priority_class: int) -> int:
        """What a queue of the class may take of the shared memory now."""

class PortMac(Node):
    """The receiving half of a port with flow control, in front of `node`; `transmit` is its sending half."""
    def __init__(self, engine: Engine, transmit: TransmitPort, node: Node, port: int = 0) -> None: ...
    def classify_by_dscp(self, classes: collections.abc.Mapping[int, int]) -> None:
        """Take frames for what their sender queued in the class of their DSCP, as those from an interface are.

        Those of other DSCPs belong to no lane, and so to the class in which they are queued here. Raises ValueError for
        a DSCP or class that there is not.
        """
    def enable_credits(
        self,
        *,
        source_mac: str,
        classes: collections.abc.Sequence[int],
        buffer_bytes: int,
        peer_buffer_bytes: int | None = None,
        largest_frame_bytes: int,
        update_interval_ps: int = 20000000,
    ) -> None:
        """Send each class within the far end's credits, and give it credits for buffer_bytes.

        `peer_buffer_bytes`: what the far end has, by default as much. The sender waits until it has credit for a frame
        of largest_frame_bytes. Raises ValueError for no class, or a buffer below such a frame or above 128 KiB;
        RuntimeError at a port with PFC.
        """
    def enable_pfc(self, *, source_mac: str, pause_quanta: int = 65535) -> None:
        """Obey PFC frames. Raises ValueError for an unpaced port or quanta of 0."""
    def enable_watchdog(
        self, *, classes: collections.abc.Sequence[int], detection_ps: int, restoration_ps: int, action: str = "drop"
    ) -> None:
        """Stop obeying pauses of these classes that do not end, as SONiC's PFC watchdog.

        A class that has been paused for detection_ps while a packet waited is stormed, until it has not been paused for
        restoration_ps: its packets are dropped (action drop), sent nevertheless (forward), or left as they are (alert).
        Raises ValueError for a time below 1 ps, no class, or another action; RuntimeError without PFC.
        """
    def reset_stats(self) -> None: ...
    def restart(self) -> None:
        """Forget what the far end had asked for, and ask it anew: the link has come up again."""
    def set_credit_memory(self, buffer: SharedBuffer, number: int, priority_class: int) -> None:
        """Take the memory of a class from a buffer, in which this is port `number`.

        Without it everything is taken at once. Raises ValueError when it does not fit, RuntimeError where the class has
        no credits.
        """
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
    def stats(self) -> PortMacStats: ...
    def storm(self, classes: collections.abc.Sequence[int]) -> None:
        """Ask for pauses of these classes without end, as a broken NIC does; none: stop, and let the last run out.

        Raises ValueError for a class that there is not, RuntimeError without PFC.
        """

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
    def add_far_end(self, node: Node, port: int = 0) -> int:
        """Another far end, which the link may be joined to later; returns its number. `connect`'s is 0."""
    def connect(self, node: Node, port: int = 0) -> None: ...
    def cut(self) -> TrafficCounter:
        """Lose what is on the link, serialisation included, as a failure does; returns how much.

        The sending port is taken down apart (`TransmitPort.set_up`). Raises RuntimeError within an event of a
        partition.
        """
    def draw_from(self, stream: Rng) -> None:
        """Draw faults from a stream from now on."""
    def enable_retry(
        self,
        port: TransmitPort,
        *,
        buffer_bytes: int,
        timeout_ps: int,
        attempts: int = 16,
        response_ps: int = 0,
        largest_frame_bytes: int,
    ) -> None:
        """Have `port`, which sends into the link, send again what gets lost on it, from the lost frame on (LLR).

        The port waits while frames of more than buffer_bytes wait for an acknowledgement. A frame that has not arrived
        after `attempts` replays is lost, with all that wait behind it. Raises ValueError for a port without a rate, a
        buffer below the largest frame, or a timeout below the time of an answer; RuntimeError where packets arrive with
        their first bit, or where faults duplicate or delay them.
        """
    def join(self, far_end: int) -> None:
        """Send to the far end of this number from now on; captures of what arrives end.

        Raises IndexError if there is none, RuntimeError within an event of a partition or if packets are on the link
        (`cut` takes them off).
        """
    def reset_stats(self) -> None: ...
    def retry_stats(self) -> LinkRetryStats | None:
        """Counters of retry; None without it."""
    def set_capture(self, capture: PcapWriter | None) -> None:
        """Record every packet as it arrives at the far end."""
    def set_early(self, early: bool) -> None:
        """Let packets arrive with their first bit, for a far end that cuts through; by default with their last."""
    def set_faults(
        self,
        *,
        loss: float = 0.0,
        duplicate: float = 0.0,
        delay_probability: float = 0.0,
        extra_delay_ps: int = 0,
        bit_error_rate: float = 0.0,
    ) -> None: ...
    def stats(self) -> LinkStats: ...
    @property
    def delay_ps(self) -> int: ...

class TransmitPort(Node):
    """Byte-accounted queues (strict priority, the highest class first) in front of a serialiser.

    rate_bps 0 is unpaced. queue_capacity_bytes bounds all classes together. Classes with quantum_bytes share what the
    strict ones leave, by deficit weighted round robin. As a Node it queues what it
    receives in class 0. With arrivals_serialised a packet that finds the serialiser idle leaves as it comes (its sender
    has paced it), and only what comes faster than the rate is held back. While more than split_depth_bytes waits in a
    class, its segments leave packet by packet. Raises ValueError for classes outside
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
        quantum_bytes: collections.abc.Sequence[int] = [0, 0, 0, 0, 0, 0, 0, 0],
        split_depth_bytes: int = 18446744073709551615,
    ) -> None: ...
    def count_by_kind(self) -> None:
        """Count from now on what is sent of each kind of traffic, but for the MAC's own frames."""
    def enqueue(self, data: bytes, priority_class: int = 0, ingress_port: int = 65535) -> bool:
        """Queue a frame now. False: dropped, and counted. ingress_port is where a switch took it in."""
    def reset_stats(self) -> None: ...
    def set_buffer(self, buffer: SharedBuffer, number: int) -> None:
        """Take memory of a buffer, as its port `number`. Raises RuntimeError when packets wait already."""
    def set_capture(self, capture: PcapWriter | None) -> None:
        """Record every frame as its serialisation starts."""
    def set_trimming(
        self,
        *,
        size_bytes: int,
        dscp: int,
        priority_class: int,
        classes: collections.abc.Sequence[int],
        trimmable_dscps: collections.abc.Sequence[int],
        reserved_bytes: int = 0,
    ) -> None:
        """Trim what `classes` have no room for, if it carries one of `trimmable_dscps`, instead of dropping it.

        A switch's port cuts such a packet to size_bytes (of its frame; all that the program parses stays), gives it
        `dscp` and sends it in the queue priority_class. reserved_bytes are for this queue alone, beyond
        queue_capacity_bytes; with a shared buffer the class's thresholds hold instead. Raises ValueError for a size
        below 64, numbers that are no class or DSCP, and trimmed packets that could be trimmed again.
        """
    def set_up(self, up: bool) -> None:
        """Down: drop what waits and what comes, and ask no source."""
    def stats(self) -> PortStats: ...
    def transmitted_by_kind(self) -> dict[int, int]:
        """Bytes sent of each kind of traffic that there was any of; none where they are not counted.

        0 is the kind of what nobody has given one, 255 that of acknowledgements and CNPs.
        """
    def waiting_by_arrival(self) -> list[WaitingFrom]:
        """What waits, by class, port and lane by which it came; without a shared buffer nobody has kept that."""
    @property
    def is_up(self) -> bool: ...
    @property
    def packet_rate_pps(self) -> int: ...
    @packet_rate_pps.setter
    def packet_rate_pps(self, arg1: int) -> None: ...
    @property
    def queue_capacity_bytes(self) -> int: ...
    @queue_capacity_bytes.setter
    def queue_capacity_bytes(self, arg1: int) -> None: ...
    @property
    def queue_depth_bytes(self) -> int: ...
    @property
    def rate_bps(self) -> int: ...
    @rate_bps.setter
    def rate_bps(self, arg1: int) -> None: ...

class PacketSocket(Node):
    """An AF_PACKET socket on an interface of this process's network namespace; real clock only.

    What it receives as a Node is sent out of the interface; what arrives there goes to the connected node.
    To open and to close one takes the kernel tens of milliseconds; several threads may do so at once.
    Raises OSError if it can't be opened, RuntimeError on a virtual clock.
    """
    def __init__(
        self, engine: Engine, interface: str, *, promiscuous: bool = True, ring_bytes: int = 2097152
    ) -> None: ...
    def close(self) -> None: ...
    def connect(self, node: Node, port: int = 0) -> None:
        """Where received frames go. Until then they wait in the ring."""
    def reset_stats(self) -> None: ...
    def set_capture(self, received: PcapWriter | None, sent: PcapWriter | None) -> None:
        """Record frames received from and sent to the interface, in one file or two."""
    def stats(self) -> PacketSocketStats: ...
    @property
    def interface(self) -> str: ...
    @property
    def mtu_bytes(self) -> int: ...

class CommonContents:
    """What tables of switches that run one program have in common.

    `tables` has by number whether there are entries, and the number of all default entries' own action (None: it
    differs); `actions` by number the data of those in use, and 0xff for each byte of it that is the same everywhere.
    """
    def __init__(
        self, tables: collections.abc.Sequence[tuple[bool, int | None]], actions: dict[int, tuple[bytes, bytes]]
    ) -> None: ...
    @property
    def actions(self) -> dict[int, tuple[bytes, bytes]]: ...
    @property
    def tables(self) -> list[tuple[bool, int | None]]: ...

class SwitchProgram:
    """A compiled program; `functions` are addresses of its entry points, `code` is kept alive with it."""
    def __init__(
        self,
        *,
        functions: collections.abc.Mapping[str, int],
        code: object,
        cleared_bytes: int,
        large_apart_bytes: int,
        large_parts_bytes: collections.abc.Sequence[int],
        metadata_offset_bytes: int,
        metadata_bytes: int,
        max_headers_bytes: int,
        max_digest_bytes: int,
        max_action_data_bytes: int,
        tables: list[dict[str, object]],
        action_profile_count: int,
        registers_bytes: int,
        counter_count: int,
        port_counters: collections.abc.Sequence[tuple[int, int]],
        port_registers: collections.abc.Sequence[tuple[int, int]],
        meter_count: int,
        value_set_count: int,
        log_formats: collections.abc.Sequence[str],
        assumed: CommonContents | None = None,
    ) -> None: ...

class Switch(Node):
    class PreparedKey:
        pass

    class PreparedAction:
        pass

    @staticmethod
    def drop_reasons() -> list[str]:
        """Names of the reasons by number."""
    def __init__(
        self,
        engine: Engine,
        *,
        name: str,
        cpu_port: int = 510,
        drop_port: int = 511,
        depth_unit: str = "cells",
        cell_bytes: int = 80,
        time_unit: str = "ns",
    ) -> None: ...
    def add_contents_to(self, common: CommonContents) -> None:
        """Take the contents of its tables into account."""
    def attach_port(self, port: int, transmit_port: TransmitPort) -> None:
        """Packets for `port` go to `transmit_port`; the egress pipeline runs as they leave its queue."""
    def clone_session_delete(self, id: int) -> bool: ...
    def clone_session_set(
        self,
        id: int,
        replicas: collections.abc.Sequence[tuple[int, int]],
        priority_class: int,
        packet_length_bytes: int,
    ) -> None: ...
    def close_search(self, finish: bool) -> None:
        """Look at no further packets; `finish`: also decide the ones still in the switch."""
    def counter_write(self, index: int, packets: int, bytes: int) -> None: ...
    def counters_read(self, first: int, count: int) -> list[tuple[int, int]]: ...
    def draw_from(self, stream: Rng) -> None:
        """Draw the program's random numbers from a stream from now on."""
    def drops(self) -> dict[str, int]:
        """Packets dropped, by reason."""
    def entry_action(
        self, table: int, key: tuple[bytes, bytes, bytes, bytes, int] | None
    ) -> tuple[int, int, bytes, int]:
        """Kind, number and data of an entry's action, and its idle timeout."""
    def entry_counter(self, table: int, key: tuple[bytes, bytes, bytes, bytes, int] | None) -> tuple[int, int]: ...
    def entry_idle_ns(self, table: int, key: tuple[bytes, bytes, bytes, bytes, int] | None) -> int: ...
    def entry_meter(
        self, table: int, key: tuple[bytes, bytes, bytes, bytes, int] | None
    ) -> tuple[tuple[int, int, int, int, int | None] | None, list[tuple[int, int]], bytes]: ...
    def group_delete(self, profile: int, id: int) -> bool: ...
    def group_insert(
        self, profile: int, id: int, members: collections.abc.Sequence[tuple[int, int, int]], is_random: bool
    ) -> bool: ...
    def group_modify(self, profile: int, id: int, members: collections.abc.Sequence[tuple[int, int, int]]) -> None: ...
    def insert_prepared(self, entries: collections.abc.Sequence[object]) -> int:
        """Inserts entries, each a tuple of a prepared key and action; how many until one that is refused."""
    def load(self, program: SwitchProgram) -> None: ...
    def losses(self) -> list[tuple[str, int, int, bool, int]]:
        """Packets that ended here: reason, drop site (0: none), port they came by, whether copies, how many."""
    def member_delete(self, profile: int, id: int) -> bool: ...
    def member_insert(self, profile: int, id: int, action: int, data: bytes) -> bool: ...
    def member_modify(self, profile: int, id: int, action: int, data: bytes) -> None: ...
    def meter_read(
        self, index: int
    ) -> tuple[tuple[int, int, int, int, int | None] | None, list[tuple[int, int]], bytes]: ...
    def meter_restore(
        self,
        index: int,
        state: tuple[tuple[int, int, int, int, int | None] | None, collections.abc.Sequence[tuple[int, int]], bytes],
    ) -> None: ...
    def meter_write(self, index: int, config: tuple[int, int, int, int, int | None] | None) -> None: ...
    def multicast_group_delete(self, id: int) -> bool: ...
    def multicast_group_set(self, id: int, replicas: collections.abc.Sequence[tuple[int, int]]) -> None: ...
    def packet_out(self, data: bytes) -> None:
        """Let the switch receive a packet on its CPU port."""
    def prepare_action(self, number: int, data: bytes) -> Switch.PreparedAction: ...
    def prepare_key(
        self, table: int, value: bytes, mask: bytes, low: bytes, high: bytes, priority: int, max_size: int
    ) -> Switch.PreparedKey: ...
    def process(self, port: int, data: bytes) -> list[tuple[int, bytes]]:
        """Run a packet through both pipelines at once; what leaves."""
    def process_repeatedly(self, packets: collections.abc.Sequence[tuple[int, bytes]], count: int) -> int:
        """`count` packets, each a port and bytes, the given ones over and over; how many left."""
    def profile_sizes(self, profile: int) -> tuple[int, int]: ...
    def receive(self, port: int, data: bytes) -> None: ...
    def registers_fill(self, offset: int, stride: int, cell: bytes, count: int) -> None: ...
    def registers_read(self, offset: int, stride: int, cell_bytes: int, count: int) -> bytes: ...
    def replace_code(self, program: SwitchProgram) -> None:
        """Go on with other code for the same program. ValueError if its shape is another."""
    def reset_drops(self) -> None: ...
    def restore_entry_meter(
        self,
        table: int,
        key: tuple[bytes, bytes, bytes, bytes, int] | None,
        state: tuple[tuple[int, int, int, int, int | None] | None, collections.abc.Sequence[tuple[int, int]], bytes],
    ) -> None: ...
    def search_packets(
        self,
        tests: list[dict[str, object]],
        rule: collections.abc.Sequence[int],
        holds_for_zero: int,
        undecidable: int,
        most_found: int,
        most_perhaps: int,
        ask: collections.abc.Callable[[int, bytes], bool],
        changed: collections.abc.Callable[[], object],
        port: int | None,
        from_ps: int,
        until_ps: int,
    ) -> None:
        """Look for packets that fulfil a condition, instead of tracing them (weft/switch/debug/searches.py)."""
    def set_entry_counter(
        self, table: int, key: tuple[bytes, bytes, bytes, bytes, int] | None, packets: int, bytes: int
    ) -> None: ...
    def set_entry_meter(
        self,
        table: int,
        key: tuple[bytes, bytes, bytes, bytes, int] | None,
        config: tuple[int, int, int, int, int | None] | None,
    ) -> None: ...
    def set_event_listener(self, listener: collections.abc.Callable[[], object] | None) -> None:
        """Call listener() from the engine whenever wait_event() has one more; None ends that."""
    def set_logging(self, enabled: bool) -> None: ...
    def set_prepared_defaults(self, defaults: collections.abc.Sequence[tuple[int, object]]) -> None:
        """Sets default actions, each a tuple of a table and a prepared action."""
    def set_watch_port_up(self, profile: int, port: int, up: bool) -> None: ...
    def specialise(self, program: SwitchProgram) -> bool:
        """Go on with code that takes contents of tables for granted.

        The first write that breaks it brings the general code back. False if the contents break it already, or if the
        code in use is not the program's own.
        """
    def start_trace(
        self,
        packets: int,
        port: int | None,
        ended: collections.abc.Callable[[], object] | None = None,
        from_ps: int = 0,
        until_ps: int = 9223372036854775807,
        only: collections.abc.Sequence[int] = [],
    ) -> None:
        """Trace the next packets of a port, in a time.

        ended() is called as one, or a copy, ends. `only`, unless empty: of these packets, only the ones with these
        numbers, counted from 1, in ascending order.
        """
    def stop_trace(self) -> None: ...
    def table_delete(self, table: int, value: bytes, mask: bytes, low: bytes, high: bytes, priority: int) -> bool: ...
    def table_entries(self, table: int) -> list[tuple[bytes, bytes, bytes, bytes, int, int, int, bytes, int]]:
        """All entries: value, mask, low, high and priority, then as entry_action."""
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
        max_size: int = 18446744073709551615,
    ) -> bool:
        """False: such an entry exists. OverflowError: the table has max_size entries."""
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
    def table_set_default(self, table: int, kind: int, id: int, data: bytes) -> None: ...
    def table_size(self, table: int) -> int: ...
    def take_log(self) -> list[str]: ...
    def take_trace(self) -> bytes:
        """All records so far, each a SwitchTrace::Head and its data."""
    def value_set_write(self, index: int, members: collections.abc.Sequence[tuple[bytes, bytes]]) -> None: ...
    def wait_event(self, timeout_s: float) -> tuple[str, int, bytes, int] | None:
        """("packet_in" or "digest", learn list, bytes, time in ps), or None when the time is over."""
    def would_send(self, packets: collections.abc.Sequence[tuple[int, bytes]]) -> list[list[tuple[int, bytes]]]:
        """What would leave for each of the packets, each a port and bytes; they count nowhere."""
    @property
    def code(self) -> tuple[bool, int, int]:
        """Whether the code is specialised, how often writes have ended that, and writes to tables."""
    @property
    def received_packets(self) -> int: ...
    @property
    def search_results(self) -> tuple[list[tuple[int, int, bool]], int, int, bool]:
        """Packets found: number of arrival, time, whether the condition holds for certain; then how many packets were
        looked at, how many that hold perhaps were not kept, and whether the search is over.
        """
    @property
    def trace_packets_missed(self) -> int: ...

class PathChoice:
    """Decides the entropy (14 bits) of every packet of a queue pair, made by make_path_choice()."""
    def entropy(self, now_ps: int, sequence: int = 0, retransmission: bool = False) -> int:
        """The entropy of the packet that is about to be sent: of its UDP source port and IPv6 flow label."""
    def on_congestion_notification(self, now_ps: int) -> None: ...
    def on_delivered(self, now_ps: int, entropy: int, round_trip_ps: int, congestion_experienced: bool = False) -> None:
        """A packet has arrived; round_trip_ps 0: it had been sent twice.

        congestion_experienced: a switch had marked it (CE).
        """
    def on_lost(self, now_ps: int, entropy: int) -> None:
        """A packet counts as lost."""
    def on_timeout(self, now_ps: int) -> None:
        """A retransmission has timed out."""
    @property
    def name(self) -> str: ...

class PathChoiceKind:
    """A choice of path as its file declares it."""
    @property
    def marks(self) -> bool:
        """It reads CE marks of switches."""
    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> list[CongestionParameter]:
        """In the order of their declaration."""
    @property
    def reorders(self) -> bool:
        """Packets of a flow overtake each other even if nothing is congested or lost."""
    @property
    def source(self) -> str: ...
    @property
    def summary(self) -> str: ...

class CongestionControl:
    """Decides a queue pair's window and rate from acknowledgements, CNPs, losses and timers.

    Made by make_congestion_control() and given to one queue pair, which calls it. Direct calls are for
    tests and models. Times are emulated picoseconds, window_bytes counts frame bytes (Ethernet to iCRC),
    pacing_rate_bps 0 means as fast as the port takes frames, next_deadline_ps None that no timer runs.
    """
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
        """An acknowledgement has come.

        sequence: of the newest packet covered, counted from the queue pair's start; next_sequence: of the
        next packet never sent before; round_trip_ps 0: that packet had been sent twice; hops: routers that
        the acknowledgement passed; congestion_experienced: a switch marked (CE) what it newly covers; telemetry:
        the INT stack that it echoes.
        """
    def on_congestion_notification(self, now_ps: int) -> None:
        """A CNP has come."""
    def on_deadline(self, now_ps: int) -> None:
        """The time next_deadline_ps has come."""
    def on_loss(self, now_ps: int, timeout: bool, lost_bytes: int = 0) -> None:
        """A sequence NAK has come, or a retransmission has timed out; so many frame bytes are lost."""
    def on_packet_sent(self, now_ps: int, frame_bytes: int, retransmission: bool = False) -> None: ...
    def on_switch_notification(self, now_ps: int, *, sent_ps: int, queue_bytes: int, link_rate_bps: int) -> None:
        """A switch tells of the queue that a packet sent at sent_ps has left behind."""
    @property
    def name(self) -> str: ...
    @property
    def next_deadline_ps(self) -> int | None: ...
    @property
    def pacing_rate_bps(self) -> int: ...
    @property
    def window_bytes(self) -> int: ...

class CongestionPreset:
    """A named set of an algorithm's parameters, and what goes with it at the receiver."""
    @property
    def cnp_interval_ps(self) -> int:
        """A receiver's CNPs for a flow come at most so often."""
    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str:
        """Where its values come from."""

class CongestionParameter:
    """A parameter as its algorithm declares it."""
    @property
    def default(self) -> float | None:
        """None where it follows from `default_rule`."""
    @property
    def default_rule(self) -> str:
        """What the default follows from; empty where it is a number."""
    @property
    def least(self) -> float: ...
    @property
    def meaning(self) -> str: ...
    @property
    def most(self) -> float: ...
    @property
    def name(self) -> str:
        """It ends in its unit (_ps, _bps, _bytes, _packets) if it has one."""
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
        notifications: bool = False,
    ) -> None: ...
    @property
    def every_acknowledgement(self) -> bool:
        """An acknowledgement of each packet, not one for several."""
    @property
    def marks(self) -> bool:
        """CE marks of switches: as CNPs, or echoed by acknowledgements."""
    @property
    def notifications(self) -> bool:
        """Switches that notify senders of queues, and mark what exceeds the supply."""
    @property
    def one_path(self) -> bool:
        """All packets of a flow on one path."""
    @property
    def telemetry(self) -> bool:
        """INT in data packets, echoed by acknowledgements."""

class CongestionMarks:
    """Where switches are to mark for an algorithm, as times to drain a queue."""
    @property
    def kmax_round_trips(self) -> float: ...
    @property
    def kmin_round_trips(self) -> float:
        """Of the farthest pair's idle round trip; 0: as for DCQCN."""
    @property
    def pmax(self) -> float:
        """Probability of a mark just below kmax."""

class CongestionControlKind:
    """A congestion control as its file declares it."""
    @property
    def marks(self) -> CongestionMarks: ...
    @property
    def name(self) -> str: ...
    @property
    def needs(self) -> CongestionNeeds: ...
    @property
    def parameters(self) -> list[CongestionParameter]:
        """In the order of their declaration."""
    @property
    def presets(self) -> list[CongestionPreset]:
        """The default first; none where it has none."""
    @property
    def source(self) -> str: ...
    @property
    def summary(self) -> str: ...

class Acknowledgement:
    """What a sender learns from an acknowledgement."""
    @property
    def acknowledged_bytes(self) -> int:
        """Frame bytes, from Ethernet to iCRC, that it newly covers."""
    @property
    def acknowledged_packets(self) -> int: ...
    @property
    def congestion_experienced(self) -> bool:
        """Whether a switch marked (CE) the packets that it newly covers."""
    @property
    def hops(self) -> int:
        """Routers that the acknowledgement itself passed."""
    @property
    def in_flight_bytes(self) -> int:
        """Frame bytes that are still not acknowledged."""
    @property
    def next_sequence(self) -> int:
        """The next packet that will be sent for the first time."""
    @property
    def now_ps(self) -> int: ...
    @property
    def round_trip_ps(self) -> int:
        """Of the newest packet covered; 0 if that one was retransmitted."""
    @property
    def sequence(self) -> int:
        """The newest packet covered, counted from the queue pair's start."""
    @property
    def telemetry(self) -> TelemetryFields | None:
        """The INT stack that the receiver echoed, None without INT."""

class ExtensionError(ValueError):
    """A user's class cannot be used, or gave what cannot be used."""

class HostLinks:
    """The links inside a host that payload crosses between its memories and its NICs, one direction each.

    A link carries one packet at a time, of all NICs whose ports name it, in the order in which they ask. Raises
    ValueError for a rate of 0.
    """
    def __init__(self, engine: Engine, rates_bps: collections.abc.Sequence[int]) -> None: ...
    def reset_stats(self) -> None:
        """Set these counters to zero."""
    def stats(self, link: int) -> HostLinkStats:
        """What crossed a link."""

class HeaderTemplate:
    """What a queue pair builds its packets from.

    Of the headers given to build(), addresses, DSCP, ECN, hop limit, identification, fragmentation, partition key,
    destination queue pair, FECN and the migration bit are the template's.
    """
    def __init__(self, headers: RoceHeaders) -> None: ...
    def build(self, headers: RoceHeaders, payload: bytes = b"") -> bytes:
        """As build_packet(). Raises ValueError as it does."""
    def build_as_length(self, headers: RoceHeaders, payload_bytes: int) -> bytes:
        """The same with zeros in place of payload, pad and iCRC."""

class CompletionHandler:
    """Takes the completions of queue pairs, on the engine's thread."""

class CompletionQueue(CompletionHandler):
    """Keeps completions until they are polled.

    As a file (`fileno`, from its first call on) it is readable while completions wait.
    """
    def __init__(self, engine: Engine) -> None: ...
    def fileno(self) -> int: ...
    def poll(self, limit: int | None = None) -> list[Completion]:
        """Take out completions, oldest first.

        kind: write, send (ours, acknowledged), receive, write_immediate (the peer's, arrived), aggregate.
        status: success, local_length_error, local_protection_error, remote_invalid_request, remote_access_error,
        remote_operation_error, retry_exceeded, rnr_retry_exceeded, flushed. fault: none, local, peer,
        network: whose doing the error is.
        """
    def set_listener(self, listener: collections.abc.Callable[[], object] | None) -> None:
        """Call listener() from the engine when a completion comes and none was waiting; None ends that."""
    def wait(self, count: int, timeout_seconds: float) -> bool:
        """True once count completions wait to be polled, False after that much real time."""

class MemoryRegion:
    """Memory registered with a NIC, by Nic.register_memory() or Nic.register_sink()."""
    def deregister(self) -> None:
        """Refuse the rkey from now on, for ever. Requests in progress keep the buffer alive."""
    @property
    def length_bytes(self) -> int: ...
    @property
    def rkey(self) -> int: ...
    @property
    def virtual_address(self) -> int: ...

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
        entropy_seed: int = 0,
    ) -> None:
        """A NIC whose payload crosses PCIe, at pcie_rate_bps (0: unlimited) in each direction for all ports.

        dma_latency_ps passes from the end of a transfer until its bytes are there, per_message_overhead_ps
        before the first packet of each message sent, per_packet_overhead_ps before each data packet sent or
        received. entropy_seed draws the source ports that queue pairs and the IP stack choose. Raises ValueError for
        negative times.
        """
    def add_port(
        self,
        transmit_port: TransmitPort,
        *,
        mac: str,
        addresses: collections.abc.Sequence[str],
        host_links: HostLinks | None = None,
        fetched_over: collections.abc.Sequence[int] = [],
        placed_over: collections.abc.Sequence[int] = [],
    ) -> int:
        """Send through transmit_port, at its rate; returns the port's number, from 0, for Link.connect().

        Payload crosses the named links of host_links in order, to be sent and when received, in place of the NIC's
        PCIe. Raises ValueError for links there are not and those of another engine.
        """
    def allocate_queue_pair_number(self) -> int:
        """A number not in use, for a queue pair to be made later."""
    def detach(self, queue_pair: QueuePair) -> None:
        """Packets for it are dropped and counted from now on."""
    def is_port_up(self, port: int) -> bool: ...
    def most_waiting_bytes(self, port: int) -> int:
        """Most payload received at a port that has waited at once for the host's links."""
    def register_foreign(
        self, foreign: ForeignMemory, *, virtual_address: int = 0, memory_domain: MemoryDomain | None = None
    ) -> MemoryRegion:
        """Register memory that the engine reads and writes by copies alone; peers may do everything with it."""
    def register_memory(
        self,
        buffer: typing_extensions.Buffer | numpy.typing.NDArray[typing.Any],
        *,
        virtual_address: int = 0,
        remote_write: bool = True,
        remote_read: bool = False,
        remote_atomic: bool = False,
        local_write: bool | None = None,
        memory_domain: MemoryDomain | None = None,
    ) -> MemoryRegion:
        """Register a C-contiguous buffer without copying it.

        remote_write, remote_read, remote_atomic: what peers may do. local_write (None: as remote_write): it takes
        what READs, atomics and receives of this host bring. If nobody may write, the buffer may be read-only.
        memory_domain: whose queue pairs let peers reach it, None: the NIC's first.
        Raises ValueError if it is not contiguous, BufferError if it is read-only.
        """
    def register_sink(self, length_bytes: int, *, virtual_address: int = 0) -> MemoryRegion:
        """A region whose bytes are checked and counted, but kept nowhere (load generators); zeros are read."""
    def reset_stats(self) -> None: ...
    def set_capture(self, port: int, capture: PcapWriter | None) -> None:
        """Record what the port receives and sends."""
    def set_port_up(self, port: int, up: bool) -> None:
        """A port's link is there, or not: it then sends nothing, and MRC's queue pairs use the other ports.

        Otherwise as TransmitPort.set_up. Raises ValueError for a port that there is not.
        """
    def stats(self, port: int) -> NicStats:
        """What arrived at a port; `dropped` by reason.

        Reasons: parse_error()'s names and foreign_mac, foreign_address, unknown_queue_pair.
        """
    def take_recovery_times(self) -> tuple[int, int]:
        """When the first and the last packet sent again was acknowledged since the last call; -1: there was none."""
    @property
    def name(self) -> str: ...

class ForeignMemory:
    """A writable C-contiguous buffer that the engine reaches as it does the memory of other processes.

    Raises ValueError if it is not contiguous, BufferError if it is read-only.
    """
    def __init__(self, buffer: typing_extensions.Buffer | numpy.typing.NDArray[typing.Any]) -> None: ...
    def unmap(self, from_bytes: int = 0) -> None:
        """From that byte on, reads and writes fail from now on, for ever. Call it between runs of the engine."""

class MemoryDomain:
    """A protection domain of a NIC beyond its first.

    Peers reach what is registered in it over queue pairs of this domain alone. Its rkeys are no other domain's.
    """
    def __init__(self, nic: Nic) -> None: ...

class SharedReceives:
    """A shared receive queue: receives that several queue pairs of a NIC take theirs from."""
    def __init__(self, nic: Nic) -> None: ...
    def __len__(self) -> int: ...
    def arm(self, limit: int, listener: collections.abc.Callable[[], object] | None) -> None:
        """Call listener() from the engine, once, when a receive is taken and fewer than limit are left."""
    def post_receive(
        self, memory: MemoryRegion | None, offset_bytes: int, length_bytes: int, *, work_id: int = 0
    ) -> None:
        """A place (None: bytes are discarded) for one incoming SEND of any of the queue pairs."""

class NotificationReceiver:
    """Gives switches' notifications of queues to the NIC's queue pairs; other packets go where they went."""
    def __init__(self, nic: Nic) -> None: ...

class HopLatencies:
    """What packets have met at each hop of their paths, by the INT stacks that acknowledgements bring back.

    Queue pairs that are to count there are told so (`RcQueuePair.count_hops`). A host has 1,024 paths at most.
    """
    def __init__(self, engine: Engine) -> None: ...
    def paths(self) -> list[PathLatencies]:
        """Return what is known of each path.

        A hop's latency_ns is a sum over all stacks of the time since the packet left the hop before, counts are how
        many were in each bucket; of the first hop both are 0. queue_cells is a sum of what waited as packets left, in
        cells of 80 bytes.
        """
    def reset(self) -> None:
        """Forget everything."""
    def stacks_beyond_limit(self) -> int:
        """Return how many stacks were of paths beyond the limit."""

class EvTable:
    """Entropy values (EVs) of an MRC queue pair and their states, without packets.

    Raises ValueError if a plane would have none, and for indices and planes that there are not.
    """
    def __init__(self, planes: int, active: int, backups: int, seed: int = 0) -> None: ...
    def allow(self, ev: int) -> None:
        """Admit it again."""
    def counters(self) -> MrcCounters:
        """Changes of state."""
    def deny(self, ev: int) -> None:
        """Exclude it, as an administrator does."""
    def drawn(self) -> int | None:
        """An EV to probe, at random; None if all are denied, assumed bad or on planes that are down."""
    def evs(self) -> list[EntropyValue]:
        """All of them, by index."""
    def find(self, value: int) -> int | None:
        """The index of a value, None if there is none."""
    def may_use(self, plane: int) -> bool:
        """Whether packets may go over the plane."""
    def next(self, plane: int = 0) -> int | None:
        """The EV of the plane for the next packet; None if all are denied."""
    def next_reverse(self, plane: int = 0) -> int | None:
        """The same for SACKs and NACKs: the EV that was proven last."""
    def on_congestion(self, ev: int) -> None:
        """Its path has marked a packet, or trimmed it."""
    def on_failure(self, ev: int) -> bool:
        """A packet was lost without a word; returns whether that is news."""
    def on_probe_answer(self, ev: int, marked: bool = False) -> None:
        """A probe came back."""
    def on_proof(self, ev: int) -> None:
        """An answer shows that its path works."""
    def set_up(self, plane: int, up: bool) -> None:
        """The plane's port is up at both ends, or not."""

class EvRoutes:
    """The paths that entropy values (EVs) name, by peer; encapsulates: in an outer IPv6 header."""
    def __init__(self, *, encapsulates: bool) -> None: ...
    def add(self, peer: str, routes: collections.abc.Sequence[tuple[int, str]]) -> None:
        """Set the routes to a peer's address: EVs, each with the outer destination (empty: none).

        Raises ValueError for none, more than 16,384, two with one UDP source port, and encapsulated ones without an
        outer IPv6 address.
        """

class QueuePair:
    """What a NIC sends and receives for."""

class WritingQueuePair(QueuePair):
    """A connected queue pair, whichever its transport.

    Posting what the transport does not carry raises ValueError: MRC has WRITEs only, UET no atomics.
    """
    def count_hops(self, latencies: HopLatencies, peer: int, plane: int) -> None:
        """Have every INT stack that comes back counted there, as of packets to this rank over this plane."""
    def flush(self) -> None:
        """Put the queue pair into the error state: what is posted completes as "flushed", the peer gets no answers."""
    def observe(
        self, source: int, destination: int, plane: int, *, messages: bool = True, telemetry: bool = False
    ) -> None:
        """Have the engine's probe record messages sent, and INT stacks echoed, under these ranks and plane.

        Raises RuntimeError if the engine has no probe.
        """
    def post_compare_swap(
        self,
        memory: MemoryRegion | None,
        offset_bytes: int,
        remote_address: int,
        rkey: int,
        *,
        compare: int,
        swap: int,
        work_id: int = 0,
    ) -> None:
        """Set the 8 bytes at the peer's remote_address to swap if they equal compare.

        What they were goes to 8 bytes of memory (None: nowhere). Numbers have the hosts' byte order. The
        peer's region must have been registered with remote_atomic, the address must be a multiple of 8.
        Completes as "compare_swap".
        """
    def post_fetch_add(
        self,
        memory: MemoryRegion | None,
        offset_bytes: int,
        remote_address: int,
        rkey: int,
        *,
        add: int,
        work_id: int = 0,
    ) -> None:
        """Add to the 8 bytes at the peer's remote_address, modulo 2^64; otherwise as post_compare_swap.

        Completes as "fetch_add".
        """
    def post_read(
        self,
        memory: MemoryRegion | None,
        offset_bytes: int,
        length_bytes: int,
        remote_address: int,
        rkey: int,
        *,
        work_id: int = 0,
    ) -> None:
        """RDMA READ from the peer's remote_address to memory (None: discarded); completes as "read".

        The peer's region must have been registered with remote_read. Raises ValueError for a range outside the
        region, or more bytes than 2^31 or 2^22 packets.
        """
    def post_read_as_length(self, length_bytes: int, remote_address: int, rkey: int, *, work_id: int = 0) -> None:
        """Like post_read, with payloads that are only counted: nothing is read or written."""
    def post_receive(
        self, memory: MemoryRegion | None, offset_bytes: int, length_bytes: int, *, work_id: int = 0
    ) -> None:
        """A place (None: bytes are discarded) for one incoming SEND; completes as "receive"."""
    def post_send(
        self,
        memory: MemoryRegion | None,
        offset_bytes: int,
        length_bytes: int,
        *,
        immediate: int | None = None,
        solicited: bool | None = None,
        work_id: int = 0,
    ) -> None:
        """SEND into a receive that the peer has posted; completes as "send".

        solicited: whether its completion there is one that programs wait for which want such alone; None: with an
        immediate.
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
        solicited: bool | None = None,
        work_id: int = 0,
    ) -> None:
        """RDMA WRITE from memory (None: zeros) to the peer's remote_address; completes as "write".

        With an immediate, the peer gets "write_immediate" when all has arrived, which is solicited unless
        solicited is False. The bytes must not change
        before the completion. Raises ValueError for a range outside the region or more than 2^31 bytes.
        """
    def post_write_as_length(
        self, length_bytes: int, remote_address: int, rkey: int, *, immediate: int | None = None, work_id: int = 0
    ) -> None:
        """Like post_write, with payloads that are only counted: the peer writes nothing, nothing is checked."""
    def reset_stats(self) -> None: ...
    def set_remote_access(self, *, write: bool, read: bool, atomic: bool) -> None:
        """What the peer may ask for, whatever regions grant; at first everything. RC with go-back-N, UC and MRC."""
    def stats(self) -> RcStats: ...
    @property
    def frame(self) -> bytes:
        """A frame that goes the way of its data, without a payload."""
    @property
    def last_telemetry(self) -> TelemetryFields | None:
        """The INT stack that the newest acknowledgement echoed."""
    @property
    def pacing_rate_bps(self) -> int:
        """The rate at which its congestion control lets it send now; 0: as fast as the port takes frames."""
    @property
    def queue_pair(self) -> int:
        """Its number."""
    @property
    def window_bytes(self) -> int:
        """How many bytes of frames its congestion control lets be in flight now."""

class RcQueuePair(WritingQueuePair):
    """A connected RC queue pair on a port of a NIC: WRITE, READ, atomics and SEND.

    retransmission "selective-repeat" carries no SENDs, places data in any order and sends again only what was
    overtaken by a packet sent more than reordering_window_ps later. path_choice None: all packets have one
    entropy. congestion_control and path_choice serve this queue pair alone. queue_pair None allocates a
    number; source_udp_port None takes 14 bits of entropy from addresses and numbers. memory_domain: what the
    peer may reach, None: the NIC's first. shared_receives: where its receives are posted, None: here. RcOptions
    has all other options, of which retransmission_timeout_ps has no default: see the function of that name.
    Raises ValueError naming the parameter that is out of range.
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
        path_choice: PathChoice | None = None,
        queue_pair: int | None = None,
        source_udp_port: int | None = None,
        memory_domain: MemoryDomain | None = None,
        shared_receives: SharedReceives | None = None,
        **kwargs: typing.Unpack[RcOptions],
    ) -> None: ...
    def begin_sending(
        self,
        *,
        initial_psn: int,
        retransmission_timeout_ps: int,
        retry_limit: int,
        rnr_retry_limit: int,
        max_reads: int,
    ) -> None:
        """Set what the sending half alone needs, before anything is posted. Raises ValueError as the constructor."""
    @property
    def source_udp_port(self) -> int: ...

class MrcQueuePair(WritingQueuePair):
    """A connected queue pair of Multipath Reliable Connection: WRITE, with or without immediate.

    Each packet takes the path of another entropy value (EV). more_planes: port, destination MAC and destination
    IP of each plane after the first. routes: the paths to the peer that EVs name; None: switches hash EVs. Of
    RcOptions those of READs, SENDs, CNPs and INT do not apply, and retransmission is "selective-repeat".
    Otherwise as RcQueuePair. Raises ValueError naming the parameter that is out of range.
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
        mrc_options: MrcOptions = {},
        more_planes: collections.abc.Sequence[tuple[int, str, str]] = [],
        routes: EvRoutes | None = None,
        queue_pair: int | None = None,
        memory_domain: MemoryDomain | None = None,
        **kwargs: typing.Unpack[RcOptions],
    ) -> None: ...
    def allow_ev(self, ev: int) -> None:
        """Admit an excluded entropy value again. Raises ValueError for an index that there is not."""
    def begin_sending(
        self,
        *,
        initial_psn: int,
        retransmission_timeout_ps: int,
        retry_limit: int,
        even_retries: int,
        max_wimm: int,
        mpr: int,
    ) -> None:
        """As of RcQueuePair. even_retries: timeouts in a row, of retry_limit, before they begin to double."""
    def deny_ev(self, ev: int) -> None:
        """Exclude an entropy value.

        Raises ValueError for an index that there is not, and for the last one that is not excluded.
        """
    def ev_states(self) -> list[dict[str, int]]:
        """Of each plane, how many of its entropy values are in which state; no zeros."""
    def evs(self) -> list[EntropyValue]:
        """Its entropy values, by index."""
    def mrc_stats(self) -> MrcCounters:
        """What it counts beyond RcStats, whose acknowledgements are SACKs here."""
    def planes_up(self) -> list[bool]:
        """Of each plane, whether its port is up at both ends."""
    def probe_evs(self, evs: collections.abc.Sequence[int]) -> None:
        """Send an EV probe over each of these, by index, whatever their states.

        One that is not answered within the retransmission timeout is given up and counted (ev_probes_expired).

        Unanswered ones of an earlier call are given up. Raises ValueError for an index that there is not, or if the NIC
        has too many probes on their way.
        """
    def probed_round_trips(self) -> dict[int, int | None]:
        """By index, the round trip in picoseconds of each EV probe of the last probe_evs(); None: no answer."""
    def set_ev_event_mask(self, mask: int) -> None:
        """Which states of its EVs are EV events from now on, as the option ev_event_mask."""
    @property
    def ev_profile_id(self) -> int: ...

class UetQueuePair(WritingQueuePair):
    """A connected queue pair of Ultra Ethernet Transport: WRITE and SEND, each with or without immediate, READ.

    Of RcOptions those of CNPs and INT do not apply; retransmission is "selective-repeat" with service
    "rud", "go-back-n" with "rod". Otherwise as RcQueuePair. Raises ValueError naming the parameter that is out of
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
        uet_options: UetOptions = {},
        path_choice: PathChoice | None = None,
        queue_pair: int | None = None,
        source_udp_port: int | None = None,
        **kwargs: typing.Unpack[RcOptions],
    ) -> None: ...
    def uet_stats(self) -> UetCounters:
        """What it counts beyond RcStats."""
    @property
    def has_target_pdc(self) -> bool:
        """Whether the peer has a PDC open here."""
    @property
    def pdc_state(self) -> str:
        """Of its PDC as initiator: closed, syn, established or closing."""

class RudiQueuePair(WritingQueuePair):
    """A queue pair of Ultra Ethernet Transport with service "rudi": WRITE without immediate, READ.

    The peer may write a packet more than once, and learns nothing of messages. Otherwise as UetQueuePair.
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
        uet_options: UetOptions = {},
        path_choice: PathChoice | None = None,
        queue_pair: int | None = None,
        source_udp_port: int | None = None,
        **kwargs: typing.Unpack[RcOptions],
    ) -> None: ...
    def uet_stats(self) -> UetCounters:
        """What it counts beyond RcStats."""

class UudQueuePair(WritingQueuePair):
    """A queue pair of Ultra Ethernet Transport with service "uud": SENDs of one packet, which may be lost.

    A SEND completes when its packet has left. What arrives takes a posted receive, or is dropped and counted. Its
    congestion control is not asked. Otherwise as UetQueuePair.
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
        uet_options: UetOptions = {},
        path_choice: PathChoice | None = None,
        queue_pair: int | None = None,
        source_udp_port: int | None = None,
        **kwargs: typing.Unpack[RcOptions],
    ) -> None: ...
    def uet_stats(self) -> UetCounters:
        """What it counts beyond RcStats."""

class UcQueuePair(WritingQueuePair):
    """A connected UC queue pair on a port of a NIC: WRITE and SEND, each with or without immediate.

    A request completes when it has left. A message of which a packet is lost is dropped and counted. Of RcOptions
    those of acknowledgements, retransmission and READs do not apply; the rate of its congestion control does, the
    window does not. Otherwise as RcQueuePair. Raises ValueError naming the parameter that is out of range.
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
        path_choice: PathChoice | None = None,
        queue_pair: int | None = None,
        source_udp_port: int | None = None,
        memory_domain: MemoryDomain | None = None,
        shared_receives: SharedReceives | None = None,
        **kwargs: typing.Unpack[RcOptions],
    ) -> None: ...
    def begin_sending(self, *, initial_psn: int) -> None:
        """Set the PSN of the first packet, before anything is posted."""
    def uc_stats(self) -> UcCounters:
        """What it counts beyond RcStats."""

class UdGroups:
    """The multicast groups of UD queue pairs at a port of a NIC."""
    def __init__(self, nic: Nic, port: int) -> None: ...

class UdQueuePair(QueuePair):
    """A UD queue pair on a port of a NIC: SENDs of one packet to any queue pair, or to a multicast group.

    queue_pair None allocates a number; 1, with q_key 0x80010000, is that of connection managers. groups: of the port,
    for one that joins some. shared_receives: where its receives are posted, None: here. Raises ValueError naming the
    parameter that is out of range.
    """
    def __init__(
        self,
        nic: Nic,
        port: int,
        completions: CompletionHandler,
        *,
        q_key: int,
        queue_pair: int | None = None,
        path_mtu_bytes: int = 1024,
        data_class: int = 3,
        initial_psn: int = 0,
        groups: UdGroups | None = None,
        shared_receives: SharedReceives | None = None,
    ) -> None: ...
    def block_own_copies(self, block: bool) -> None:
        """Whether what it sends to a group of its own leaves it out."""
    def flush(self) -> None:
        """What is posted completes as "flushed", and nothing more is sent or received."""
    def join(self, group: str) -> None:
        """Receive what comes for this group. Raises ValueError if it does, or without groups."""
    def leave(self, group: str) -> None:
        """The opposite. Raises ValueError if it is no member."""
    def post_receive(
        self, memory: MemoryRegion | None, offset_bytes: int, length_bytes: int, *, work_id: int = 0
    ) -> None:
        """A place (None: bytes are discarded) for a datagram and the 40 bytes before it.

        length_bytes of its completion counts both.
        """
    def post_send(
        self,
        memory: MemoryRegion | None,
        offset_bytes: int,
        length_bytes: int,
        *,
        destination_mac: str,
        destination_ip: str,
        remote_queue_pair: int,
        q_key: int,
        immediate: int | None = None,
        solicited: bool | None = None,
        dscp: int | None = None,
        hop_limit: int = 64,
        flow_label: int = 0,
        work_id: int = 0,
    ) -> None:
        """Send a datagram from memory (None: zeros); completes as "send" when it has left.

        q_key with its highest bit set stands for the queue pair's own. dscp None: that of its data_class. flow_label
        0: path and source port are drawn for the two ends. Raises ValueError for one that is longer than the path
        MTU, that the port has no address for, or that a NIC would take for in-network aggregation.
        """
    def set_q_key(self, q_key: int) -> None: ...
    def stats(self) -> UdCounters: ...
    @property
    def queue_pair(self) -> int:
        """Its number."""

class VirtualClockPage:
    """The time of a run, in memory that its processes read."""
    def __init__(self) -> None: ...
    @property
    def descriptor(self) -> int: ...
    @property
    def now_ps(self) -> int: ...
    @now_ps.setter
    def now_ps(self, arg1: int) -> None: ...

class TimedProcess:
    """A process that lives in a run's virtual time.

    Its threads say in shared memory that they wait; `wake` ends a wait.
    """
    def __init__(self, process: int) -> None: ...
    def ask(self, thread: int) -> bool:
        """Ask a thread that computes whether it only looks at memory; False: there is no such thread."""
    def computes(self, thread: int) -> int:
        """How often a thread has answered that it does more than that."""
    def let_ahead(self, until_ps: int) -> None:
        """Let it go ahead of the run up to a time before which nothing happens; 0: not at all."""
    def pass_alarm(self) -> None: ...
    def take_rings(self) -> None: ...
    def waiting(self) -> list[tuple[int, int, str, int | None, int]]:
        """Place, thread, wait (time, news, memory or kernel; ended: it goes on), until when, and its loop."""
    def wake(self, place: int) -> None: ...
    @property
    def acts(self) -> int:
        """How often its threads did something that others may see."""
    @property
    def ahead_ps(self) -> int:
        """How far it has gone."""
    @property
    def alarm_ps(self) -> int:
        """When it wants SIGALRM; 0: never."""
    @property
    def begun(self) -> int: ...
    @property
    def doorbell_descriptor(self) -> int: ...
    @property
    def page_descriptor(self) -> int: ...
    @property
    def sent(self) -> int:
        """How often they called what may reach others through the kernel."""
    @property
    def wall_clock_uses(self) -> list[str]:
        """Calls that it has made whose times are the wall clock's, by name."""

class VerbsChannel:
    """Sends a client completion events."""
    @property
    def descriptor(self) -> int: ...

class VerbsQueuePair(CompletionHandler):
    """A queue pair of a client, which its counterpart in the engine reports to."""
    def connect(self, counterpart: WritingQueuePair) -> None: ...
    def connect_datagrams(self, counterpart: UdQueuePair, port: int) -> None: ...
    def drain(self, notifies: bool) -> None:
        """Begin nothing more; `notifies`: raise an event when nothing is under way."""
    def fail(self) -> None: ...
    def reset(self) -> None: ...
    def set_stage(self, stage: str) -> None:
        """What is taken from its rings: "idle", "receives", or "both", sends too."""
    @property
    def descriptor(self) -> int: ...
    @property
    def has_failed(self) -> bool: ...
    @property
    def has_sends(self) -> bool: ...
    @property
    def number(self) -> int: ...
    @property
    def receive_entries(self) -> int: ...
    @property
    def send_entries(self) -> int: ...
    @property
    def send_entry_bytes(self) -> int: ...

class VerbsClient:
    """What a process has made at a NIC by verbs.

    Objects have numbers of the client's own, keys and queue pairs those of the NIC. `memory` is a descriptor of
    /proc/PID/mem, which the client takes over. Errors are OSError with the errno that the verb has.
    """

    MAX_ADDRESS_HANDLES: typing.ClassVar[int] = 65536
    MAX_COMPLETIONS: typing.ClassVar[int] = 1048576
    MAX_COMPLETION_QUEUES: typing.ClassVar[int] = 4096
    MAX_DOMAINS: typing.ClassVar[int] = 1024
    MAX_INLINE_BYTES: typing.ClassVar[int] = 1024
    MAX_PIECES: typing.ClassVar[int] = 30
    MAX_QUEUE_PAIRS: typing.ClassVar[int] = 8192
    MAX_REGIONS: typing.ClassVar[int] = 65536
    MAX_REGION_BYTES: typing.ClassVar[int] = 1099511627776
    MAX_REQUESTS: typing.ClassVar[int] = 32768
    MAX_SHARED_QUEUES: typing.ClassVar[int] = 1024
    def __init__(self, nic: Nic, memory: int | None) -> None: ...
    def arm_shared_queue(self, handle: int, limit: int) -> None: ...
    def completion_queue(self, queue: int) -> tuple[int, int]:
        """Its descriptor and its entries."""
    def create_address_handle(
        self, domain: int, *, port: int, ip: str, mac: str, dscp: int | None, hop_limit: int, flow_label: int
    ) -> int: ...
    def create_channel(self) -> VerbsChannel: ...
    def create_completion_queue(self, entries: int, channel: int, cookie: int) -> int: ...
    def create_domain(self, domain: MemoryDomain) -> int:
        """`domain`: where its queue pairs look keys up."""
    def create_queue_pair(
        self,
        domain: int,
        type: int,
        send_queue: int,
        receive_queue: int,
        shared_queue: int,
        size: tuple[int, int, int, int, int],
        signals_all: bool,
        cookie: int,
    ) -> int:
        """`size`: sends, receives, pieces of each, and bytes inline."""
    def create_shared_queue(self, domain: int, requests: int, pieces: int, cookie: int) -> int: ...
    def deregister_memory(self, key: int) -> None: ...
    def destroy_address_handle(self, handle: int) -> None: ...
    def destroy_channel(self, channel: int) -> None: ...
    def destroy_completion_queue(self, queue: int) -> tuple[int, int]:
        """How many events of both kinds its client has read."""
    def destroy_domain(self, domain: int) -> None: ...
    def destroy_queue_pair(self, handle: int) -> int: ...
    def destroy_shared_queue(self, handle: int) -> int: ...
    def events_sent(self) -> int:
        """How many events it has been sent."""
    def queue_pair(self, handle: int) -> VerbsQueuePair: ...
    def register_again(
        self, key: int, domain: int, address: int, length_bytes: int, virtual_address: int, access: int
    ) -> None: ...
    def register_memory(
        self, domain: int, address: int, length_bytes: int, virtual_address: int, access: int
    ) -> int: ...
    def resize_completion_queue(self, queue: int, entries: int) -> None: ...
    def ring_of_shared_queue(self, handle: int) -> int: ...
    def set_news_listener(self, clock: VirtualClockPage, listener: collections.abc.Callable[[], object]) -> None:
        """In virtual time: set the page's time and call listener() before the first
        completion or event since the last take_news(); the run ends with the event that has it.
        """
    def shared_queue(self, handle: int) -> tuple[int, int, int, int]:
        """Its descriptor, its entries, pieces of each, its limit."""
    def shared_receives(self, handle: int) -> SharedReceives: ...
    def take_news(self) -> bool:
        """Whether there has been any."""
    def take_posted(self) -> None:
        """Take what it has posted, which the engine does itself under the real clock."""
    def watch_memory(self, watch: bool) -> None:
        """Whether what the NIC writes to its memory is news, too."""
    @property
    def doorbell_descriptor(self) -> int: ...
    @property
    def events_descriptor(self) -> int: ...
    @property
    def page_descriptor(self) -> int: ...

class ScaleUpDomain:
    """The links between the ranks of a host: a crossbar with a port for each, which blocks nothing and loses nothing.

    A message takes its bytes at the rate out of the sender's port, the latency, and its bytes in through the
    receiver's port; out and in overlap, so n bytes on idle ports take n/rate + latency. A READ sends a request without
    bytes first. Raises ValueError for a rate of 0 or a negative latency.
    """
    def __init__(self, engine: Engine, *, rate_bps: int, latency_ps: int, port_count: int) -> None: ...
    def attach(self, port: int, nic: Nic) -> None:
        """Let peers of a port write and read memory that is registered with a NIC of the same engine."""
    def reset_stats(self, port: int) -> None: ...
    def stats(self, port: int) -> ScaleUpStats: ...

class ScaleUpSockets:
    """Join a domain to those of the other ranks of its host, each in a process of its own (real clock).

    `sockets`: connected stream sockets by the port at their far end, one to each other port. Their descriptors are
    closed with the engine. Raises ValueError for other ports and other sockets, RuntimeError without a real clock,
    OSError for descriptors that are none.
    """
    def __init__(self, domain: ScaleUpDomain, own_port: int, sockets: collections.abc.Mapping[int, int]) -> None: ...

class _ScaleUpChannel:
    pass

class ScaleUpChannel(_ScaleUpChannel):
    """One end of a connection between two ports of a domain; numbers are unique at a port, as queue pairs' are.

    Completions are those of RDMA: of a WRITE at both ends, of a READ at the end that reads, when the last bit is in.
    With the line format "ll" or "ll128" the links carry flags, too. Channels of a port over which terms of the same
    reductions come have the same `group`. Raises ValueError for ports there are not, a number
    in use and another format.
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
        line_format: str = "none",
        group: int = 0,
    ) -> None: ...
    def close(self) -> None:
        """Forget what is under way; its data is neither read nor written any more."""

class ScaleUpRelay(CompletionHandler):
    """A rank that sends on what another rank of its host writes to it: whole messages, by a queue pair of its NIC.

    It is the handler of that queue pair. Senders' completions are the queue pair's; READs are refused. Raises
    ValueError as ScaleUpChannel does.
    """
    def __init__(
        self,
        domain: ScaleUpDomain,
        *,
        port: int,
        number: int,
        source_port: int,
        source_number: int,
        step_latency_ps: int = 0,
    ) -> None: ...
    def close(self) -> None:
        """Relay nothing any more; messages under way are abandoned."""
    def send_by(self, queue_pair: WritingQueuePair) -> None:
        """Name the queue pair; keep it until the relay is closed."""

class _FastForward:
    pass

class FastForward(_FastForward):
    """Repeats operations of jobs that take as long each time without their packets.

    Ranks are the numbers of executors. Raises ValueError for a tolerance that is not above 0 and below 1.
    """
    def __init__(self, partitions: Partitions, tolerance: float) -> None: ...
    def add_group(
        self,
        ranks: collections.abc.Sequence[int],
        *,
        ports: collections.abc.Sequence[collections.abc.Sequence[tuple[int, int]]],
        alike: int,
        latency_ps: int,
        is_message: bool,
        may_repeat: bool,
    ) -> int:
        """Add the ranks of collectives, or the sender and the receiver of messages; returns the group's number.

        `ports` are, for each of the ranks, the ports that its traffic takes, each with its highest rate there in bit/s.
        Operations disturb each other at a port if their rates together exceed its rate. In groups with the same number
        `alike` an operation of the same variant takes as long; `latency_ps` of that does not depend on its bytes.

        Raises ValueError for a rank or a port that is not known.
        """
    def add_port(self, rate_bps: int) -> int:
        """Add a port, or something else that operations share; returns its number."""
    def forget(self) -> None:
        """Forget all ports and groups and what was found out, between runs."""
    def set_latency(self, group: int, variant: int, latency_ps: int) -> None:
        """Say which part of the time of a group's operations of a variant does not depend on their bytes.

        Raises ValueError for a group that is not known.
        """
    def set_rank(self, rank: int, engine: Engine, executor: ScheduleExecutor) -> None:
        """Make a rank's executor known. Raises ValueError for an engine of another run."""
    @property
    def counts(self) -> FastForwardCounts: ...

class RunnableSchedule:
    """What a `ScheduleExecutor` runs."""

class Schedule(RunnableSchedule):
    """A dependency graph of one rank. Each add_... returns the number of the buffer or node it adds.

    A node starts when all nodes of `after` are done. Raises ValueError, naming the node, for a range beyond
    its buffer, ranges that do not fit each other or the data type, or a predecessor that does not exist.
    `dtype` and `operation` are names; and, or and xor are of integers.
    """
    def __init__(self) -> None: ...
    def add_aggregate(
        self,
        aggregator: int,
        range: tuple[int, int, int],
        *,
        dtype: str,
        operation: str,
        kind: str = "all_reduce",
        rank: int = 0,
        ranks: int = 1,
        root: int = 0,
        after: collections.abc.Sequence[int] = [],
    ) -> int:
        """What `kind` says is done in the network with a range, in place: all_reduce, reduce, broadcast,
        reduce_scatter, all_gather or barrier. `rank` is one of `ranks`, which share the range out evenly where each has
        a part of its own.
        """
    def add_buffer(self, buffer: typing_extensions.Buffer | numpy.typing.NDArray[typing.Any]) -> int:
        """Add a writable C-contiguous array, kept alive while the schedule is."""
    def add_copy(
        self,
        destination: tuple[int, int, int],
        source: tuple[int, int, int],
        *,
        after: collections.abc.Sequence[int] = [],
    ) -> int: ...
    def add_delay(self, duration_ps: int, *, after: collections.abc.Sequence[int] = []) -> int: ...
    def add_lengths(self, length_bytes: int) -> int:
        """Add a source or target of zeros for writes and reads only, whose packets carry their payload as a length."""
    def add_read(
        self,
        channel: int,
        target: tuple[int, int, int],
        *,
        remote_address: int,
        rkey: int,
        after: collections.abc.Sequence[int] = [],
    ) -> int:
        """RDMA READ into a range of a buffer (of zeros or lengths: what comes is discarded)."""
    def add_reduce(
        self,
        destination: tuple[int, int, int],
        source: tuple[int, int, int],
        *,
        dtype: str,
        operation: str,
        after: collections.abc.Sequence[int] = [],
    ) -> int: ...
    def add_wait_receive(self, channel: int, immediate: int, *, after: collections.abc.Sequence[int] = []) -> int: ...
    def add_write(
        self,
        channel: int,
        source: tuple[int, int, int],
        *,
        remote_address: int,
        rkey: int,
        immediate: int | None = None,
        after: collections.abc.Sequence[int] = [],
    ) -> int: ...
    def add_zeros(self, length_bytes: int) -> int:
        """Add a source of zeros without memory, or a target that discards, for writes and reads only."""
    @property
    def node_count(self) -> int: ...

class LaneEncoding:
    """How elements travel in the lanes of aggregation packets."""
    def __init__(self, dtype: str, operation: str, rank_count: int) -> None: ...
    def decode(
        self,
        lanes: numpy.typing.NDArray[numpy.int32],
        block: typing_extensions.Buffer | numpy.typing.NDArray[typing.Any],
        exponent: int = 0,
    ) -> bool:
        """Write the elements that lanes stand for; return whether one was out of the type's range."""
    def encode(
        self, block: typing_extensions.Buffer | numpy.typing.NDArray[typing.Any], exponent: int = 0
    ) -> numpy.typing.NDArray[numpy.int32]:
        """Lanes of a block's elements."""
    def exponent(self, block: typing_extensions.Buffer | numpy.typing.NDArray[typing.Any]) -> int:
        """Of a block of floats. Raises ValueError for NaN and infinity."""
    @property
    def elements_per_lane(self) -> int: ...

class ElementTable:
    """Ranges of elements by number, modulo how many there are. ValueError for none, and for descending ones."""
    @staticmethod
    def evenly(start: int, stop: int, parts: int) -> ElementTable:
        """Parts of a range, whose lengths differ by at most one, as a formula."""
    @staticmethod
    def of(ranges: collections.abc.Sequence[tuple[int, int]]) -> ElementTable:
        """Starts and ends."""
    def __len__(self) -> int: ...
    def at(self, number: int) -> tuple[int, int]: ...

class LaneSchedule:
    """What a rank does as lanes with loops; see weft.traffic.lane_schedule.LaneSchedule.

    Raises ValueError for numbers that name nothing, and for more transfers than immediates.
    """
    def __init__(self, dtype: str, operation: str, run_tag: int = 0, divisor: int = 1) -> None: ...
    def add_block(self, lane_count: int) -> None: ...
    def add_grid(self, cell_count: int, moves_data: collections.abc.Sequence[bool]) -> int: ...
    def add_loop(self, turns: int, grid: int, cell: collections.abc.Sequence[int]) -> None: ...
    def add_marks(self) -> int: ...
    def add_stage(self, after: collections.abc.Sequence[int] = []) -> int: ...
    def add_table(self, table: ElementTable) -> int: ...
    def aggregate(
        self, elements: tuple[int, int, int, int, bool], plane: int, slot: int, kind: str, rank: int, root: int
    ) -> None: ...
    def append(
        self,
        part: LaneSchedule,
        data_elements: int,
        scratch_elements: int,
        first_transfer: int,
        first_channel: int,
        after: collections.abc.Sequence[int],
    ) -> int: ...
    def await_acknowledgement(self) -> None: ...
    def await_elements(self, elements: tuple[int, int, int, int, bool], marks: int) -> None: ...
    def copy(self, elements: tuple[int, int, int, int, bool], shift: int, slot: int) -> None: ...
    def delay(self, duration_ps: int, slot: int) -> None: ...
    def mark_elements(self, elements: tuple[int, int, int, int, bool], marks: int) -> None: ...
    def receive(
        self,
        elements: tuple[int, int, int, int, bool],
        channel: collections.abc.Sequence[int],
        transfer: int,
        in_turn: bool,
        slot: int,
    ) -> None: ...
    def reduce(self, elements: tuple[int, int, int, int, bool], shift: int, slot: int) -> None: ...
    def send(
        self,
        elements: tuple[int, int, int, int, bool],
        channel: collections.abc.Sequence[int],
        transfer: int,
        to_scratch: bool,
        landing: tuple[int, int, int, int, bool] | None,
        shift: int,
        slot: int,
        ahead: int,
        terms: int = 1,
        is_copy: bool = False,
        is_to_itself: bool = False,
    ) -> None: ...
    def step_count(self, with_data: bool) -> int: ...
    @property
    def transfer_limit(self) -> int:
        """Above the largest number of a transfer."""

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
        data: typing_extensions.Buffer | numpy.typing.NDArray[typing.Any] | None,
        scratch: typing_extensions.Buffer | numpy.typing.NDArray[typing.Any] | None,
        channels: collections.abc.Sequence[tuple[int, int, int, int, int]],
        aggregators: collections.abc.Sequence[int | None],
    ) -> None: ...
    @property
    def step_count(self) -> int: ...

class ScheduleStepper:
    """A run of a schedule without engine or network: it says what is to be transferred, and learns what arrives.

    Reductions and copies are done as they come up. Each call goes as far as the schedule can without more arrivals.
    """
    def __init__(self, schedule: RunnableSchedule) -> None: ...
    def arrived(self, channel: int, immediate: int) -> None: ...
    def begin(self) -> None: ...
    def completed(self, step: int) -> None:
        """A write has been acknowledged, or an aggregation is done."""
    def delay_over(self, token: int) -> None: ...
    def take_aggregations(self) -> list[tuple[int, int, int, int, list[tuple[int, int, int | None, bool, bool]]]]:
        """Since the last call: step, aggregator, address, length in bytes, parts.

        Of a part: first element and the one after its last, the rank that gets the result (None: all), whether data are
        reduced rather than moved, and whether this rank's count.
        """
    def take_delays(self) -> list[tuple[int, int, int]]:
        """Since the last call: step, duration in ps, token."""
    def take_writes(self) -> list[tuple[int, int, int, int, int, int, int | None, tuple[int, bool, bool]]]:
        """Since the last call: step, channel, source (0: zeros), length, remote address, rkey, immediate, and what
        the host's switch does: terms that it reduces, whether it is a copy, whether it goes back to the sender.
        """
    @property
    def done(self) -> list[int]:
        """Steps that are done, in that order."""
    @property
    def is_done(self) -> bool: ...
    @property
    def unclaimed_arrivals(self) -> int:
        """Writes that have arrived and that nothing has waited for."""

class JobOperations:
    """The operations of a rank, or of several, as columns; see weft.traffic.jobs.Operations.

    `number` is that of the transfer among those of its peer, or of the collective among those of its group;
    `traffic_kind` that by which ports count what it sends (TransmitPort.count_by_kind). Raises
    ValueError, naming the operation, for values out of range and for columns that do not fit each other.
    """
    def __init__(
        self,
        kind: numpy.typing.NDArray[numpy.uint8],
        stream: numpy.typing.NDArray[numpy.int16],
        duration_ps: numpy.typing.NDArray[numpy.int64],
        size_bytes: numpy.typing.NDArray[numpy.int64],
        target: numpy.typing.NDArray[numpy.int32],
        number: numpy.typing.NDArray[numpy.int64],
        traffic_kind: numpy.typing.NDArray[numpy.uint8],
        after_offsets: numpy.typing.NDArray[numpy.int64],
        after: numpy.typing.NDArray[numpy.int32],
        after_start: numpy.typing.NDArray[numpy.bool],
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def largest_received_bytes(self) -> int:
        """The size of the largest message that is received."""

class BoundJob(RunnableSchedule):
    """A rank's part of a job over its channels. For one run.

    `peers` are, by slot, the paths to each: the executor's channel, address and key of where messages land, and the
    end of the path's share of a striped message in 1/65536. `calls` are, by slot, the schedules of collectives.
    While a collective or a message of the rank is under way, computations go on at 1 - `communication_share` of
    their rate. Messages from `stripe_bytes` on are striped, smaller ones take the paths in turn. With
    `fast_forward`, `run` is the executor's number of the job, `call_groups` have the group there, the rank's
    place in it and the variant of each call, `peer_groups` the groups of messages to each peer and from it.
    Raises ValueError for what the operations need and lack.
    """
    def __init__(
        self,
        operations: JobOperations,
        *,
        peers: collections.abc.Sequence[collections.abc.Sequence[tuple[int, int, int, int]]],
        calls: collections.abc.Sequence[RunnableSchedule],
        as_length: bool,
        run_tag: int,
        compute_scale: float,
        communication_share: float,
        stripe_bytes: int,
        fast_forward: _FastForward | None = None,
        run: int = 0,
        call_groups: collections.abc.Sequence[tuple[int, int, int]] = [],
        peer_groups: collections.abc.Sequence[tuple[int, int]] = [],
    ) -> None: ...
    @property
    def step_count(self) -> int: ...

class _AggregationClient(QueuePair):
    pass

class AggregationClient(_AggregationClient):
    """A worker of an in-network aggregation job. All workers must post the same reductions in the same order.

    Contributions go to `destination_ip` by way of `destination_mac`; results come to `group_ip`. `slot_count` is
    the window in messages, `lane_count` the lanes of a packet with data: 64, 128, 256 or 1024. `worker_numbers` are
    the tree's numbers of all workers, by rank in the job; none if these are the ranks. `rate_bps` is what the job is
    promised of the link, 0: nothing. Raises ValueError for
    parameters out of range or a group that is taken.
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
        lane_count: int = 64,
        destination_mac: str,
        destination_ip: str,
        group_ip: str,
        retransmission_timeout_ps: int,
        source_udp_port: int = 49152,
        timeout_backoff_limit: int = 5,
        retry_limit: int = 30,
        early_retransmit_distance: int = 16,
        worker_rank: int = 0,
        worker_numbers: collections.abc.Sequence[int] = [],
        data_class: int = 3,
        rate_bps: int = 0,
    ) -> None: ...
    def contributions(
        self, first: int, end: int, operation: str, data_type: str = "int32"
    ) -> numpy.typing.NDArray[numpy.int32]:
        """Return the lanes of messages from `first` to before `end`, in order: those of an operation and lane type.

        Raises ValueError if one cannot be composed.
        """
    def position(self) -> tuple[int, int, int]:
        """Numbers of the stream's first message without a result, and of those after the last sent and posted."""
    def reset_stats(self) -> None: ...
    def skip_to(self, end: int) -> None:
        """All results before message `end` have been taken: complete the requests that they end."""
    def stats(self) -> AggregationStats: ...
    def take_over(self, before: AggregationClient, first_message: int) -> None:
        """Go on with the stream of another client, which has been detached, at a message.

        That is the first one that a worker of the job has no result of. Raises ValueError if that cannot be.
        """
    def take_results(
        self, first: int, end: int, operation: str, lanes: numpy.typing.NDArray[numpy.int32], data_type: str = "int32"
    ) -> None:
        """Take results of the same messages in the same order. Raises ValueError if they cannot be."""

class _ScheduleExecutor(CompletionHandler):
    pass

class ScheduleExecutor(_ScheduleExecutor):
    """Runs schedules over the queue pairs that were made with it as their completion handler.

    As a file (`fileno`) it becomes readable when a run ends.
    """
    def __init__(self, engine: Engine) -> None: ...
    def add_aggregator(self, client: _AggregationClient) -> int: ...
    def add_channel(self, queue_pair: WritingQueuePair, step_latency_ps: int = 0) -> int:
        """Make a queue pair known, and return the number by which schedules name it.

        Steps learn of what arrives `step_latency_ps` later. Raises ValueError for a number in use, and a negative
        latency.
        """
    def add_scale_up_channel(self, channel: _ScaleUpChannel, step_latency_ps: int = 0) -> int:
        """The same of a channel between ranks of a host."""
    def cancel(self, run: int) -> None: ...
    def clear_to_send(self, channel: int, clearances: int, *, window: int, chunk_bytes: int) -> None:
        """Have receivers clear a channel's messages, over the channel `clearances`; at both ends.

        Raises ValueError for settings out of range, and for channels without queue pairs or that have it.
        """
    def clear_to_send_stats(self) -> ClearToSendStats:
        """What was cleared and held."""
    def detour(self, channel: int, over: collections.abc.Sequence[int], peer_received: int) -> None:
        """Have other channels carry, in turn, what a suspended one would, but for what its peer has received.

        Raises ValueError if it is not suspended, or for channels or a number that cannot be.
        """
    def fileno(self) -> int: ...
    def forget(self, run: int) -> None:
        """Release a run that has ended. Raises RuntimeError if it has not."""
    def observe(self, rank: int) -> None:
        """Have the engine's probe record every node of runs that start from now on, as a step of this rank.

        Raises RuntimeError if the engine has no probe.
        """
    def operation_times(
        self, job: BoundJob
    ) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]:
        """When each operation of a job's run has started and ended, in ps; the largest number where it has not."""
    def receive_over(self, channel: int, over: int) -> None:
        """What arrives over one channel arrives over another; raises ValueError for channels that cannot."""
    def remove_aggregator(self, aggregator: int) -> None: ...
    def remove_channel(self, channel: int) -> None: ...
    def replace_aggregator(self, aggregator: int, client: _AggregationClient) -> None:
        """Have another client do what one did, under the same number. Raises ValueError for an unknown one."""
    def resume(self, channel: int, queue_pair: WritingQueuePair) -> None:
        """Have a new queue pair carry what is posted to a channel from now on.

        Raises ValueError if the channel is on no detour.
        """
    def set_copies(self, channel: int, *, latency_ps: int, chunk_bytes: int, rate_bps: int) -> None:
        """Have steps learn of messages and data of READs later, by latency_ps and a chunk's time at rate_bps.

        A shorter message takes its own time. Raises IndexError for a channel that is not there.
        """
    def set_end_listener(self, listener: collections.abc.Callable[[], object] | None) -> None:
        """Call listener() from the engine whenever a run ends; None ends that."""
    def start(self, schedule: RunnableSchedule, start_ps: int = 0, *, run: int = 0, keep_writes: bool = False) -> int:
        """Start at start_ps (now, if that is past); returns the number of the run, `run` or the next one.

        Raises ValueError if the schedule names a channel or aggregator that does not exist, or if there is such a run.
        """
    def status(self, run: int) -> RunStatus: ...
    def suspend(self, channel: int) -> int:
        """Stop a channel's queue pair, keep what is not acknowledged; returns how many messages have arrived.

        Raises ValueError for a channel that has no queue pair.
        """
    def take_ended(self) -> list[int]:
        """Runs that ended since the last call."""
    def writes(self, run: int) -> RunWrites:
        """Columns of the WRITEs acknowledged so far, of a run that was started to keep them; by their nodes."""

class ObservedFlow:
    """What an engine's probe records of a flow that is sent, and under which names."""
    def __init__(
        self, source: int, destination: int, plane: int, *, message: bool = True, telemetry: bool = False
    ) -> None: ...

class FlowGenerator:
    """WRITEs of a host that start at given times, each over a queue pair of its own that lives as long as the flow.

    Both ends of a flow must know it, each its own generator: `place` is what add_port() returned, sizes are 1 byte
    to 2 GiB, starts count from the run's. The executor's listener is notified of the end.
    """
    def __init__(self, nic: Nic, executor: _ScheduleExecutor) -> None: ...
    def add_peer(self, first: str, more: collections.abc.Sequence[str]) -> None:
        """Say which addresses a peer has on the planes after the first, where flows name its first one.

        Queue pairs of MRC then use all planes that both ends have.
        """
    def add_port(
        self,
        port: int,
        *,
        destination_mac: str,
        congestion_control: str | collections.abc.Callable[[int], CongestionControl],
        parameters: collections.abc.Mapping[str, float] = {},
        preset: str = "",
        path_choice: collections.abc.Callable[[int, int], PathChoice | None] | None = None,
        as_lengths: bool = False,
        options: RcOptions,
        mrc_options: MrcOptions | None = None,
        mrc_routes: EvRoutes | None = None,
        more_planes: collections.abc.Sequence[tuple[int, str]] = [],
        uet_options: UetOptions | None = None,
        **kwargs: typing.Unpack[PathOptions],
    ) -> int:
        """Say how queue pairs of a port are made; returns the place by which flows name it.

        congestion_control: a name, with its parameters and the path's properties (make_congestion_control), or what
        makes one for each flow, given the size of its full frames; path_choice makes one from the number of a flow's
        queue pair and that size; as_lengths: packets carry their payload as a length; options: of RcQueuePair, less
        first sequence numbers, which are the flow's; mrc_options: queue pairs are of MRC, over this port and
        more_planes, ports with the destination MAC of what leaves by them; mrc_routes: the paths that their EVs name,
        to all addresses of peers; uet_options: queue pairs are of UET.
        """
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
    def allow_ev(self, queue_pair: int, ev: int) -> None:
        """See MrcQueuePair.allow_ev; nothing happens if the queue pair has gone."""
    def cancel(self) -> None:
        """End the run, if it has not ended; its queue pairs go."""
    def counters(self) -> RcCounters:
        """Sums over all its queue pairs, those that are gone included."""
    def deny_ev(self, queue_pair: int, ev: int) -> None:
        """See MrcQueuePair.deny_ev; nothing happens if the queue pair has gone."""
    def ev_profile_ids(self) -> list[int]:
        """The ev_profile_id of each of its queue pairs of MRC that there are now."""
    def ev_states(self) -> list[dict[str, int]]:
        """Of each port of the NIC, how many entropy values of its queue pairs are in which state; no zeros.

        Queue pairs that are gone count as they were then. [] without queue pairs of MRC.
        """
    def evs(self, queue_pair: int) -> list[EntropyValue]:
        """See MrcQueuePair.evs; [] if the queue pair has gone."""
    def mrc_counters(self) -> MrcCounters:
        """What its queue pairs of MRC have counted, and those that are gone."""
    def mrc_queue_pairs(self) -> dict[int, list[tuple[int, str]]]:
        """The planes of its queue pairs of MRC that there are now, by number.

        Each plane is the NIC's port and the peer's address there.
        """
    def probe_evs(self, queue_pair: int, evs: collections.abc.Sequence[int]) -> None:
        """See MrcQueuePair.probe_evs; nothing happens if the queue pair has gone."""
    def probed_round_trips(self, queue_pair: int) -> dict[int, int | None]:
        """See MrcQueuePair.probed_round_trips; {} if the queue pair has gone."""
    def records(self) -> FlowRecords:
        """Columns of the flows sent and acknowledged so far, in that order; times are emulated picoseconds."""
    def reset_counters(self) -> None: ...
    def set_ev_denied(self, place: int, peer: str, value: int, denied: bool) -> None:
        """Exclude an entropy value of a port's queue pairs to a peer's address, or admit it again.

        Raises ValueError if it does not name a path there.
        """
    def set_ev_event_mask(self, profile_id: int, mask: int) -> None:
        """Which states of EVs are EV events, of its queue pairs with this profile, those to come included."""
    def start(self, start_ps: int = 0, *, run: int = 0) -> None:
        """Start at start_ps (now, if that is past). Raises RuntimeError the second time.

        What is recorded of its messages bears the number of the run, and as their step that of the flow.
        """
    def status(self) -> RunStatus:
        """The run's state; nodes are flows, sent (and acknowledged) and received."""
    def uet_counters(self) -> UetCounters:
        """The same of UET."""

class _ServiceClient(QueuePair):
    pass

class ServiceClient(_ServiceClient):
    """A host's requests to a service of switches: barriers, or additions to counters, one run of them.

    Requests go to `destination_ip` by way of `destination_mac`, answers come to `group_ip`. `cells` are used in turn;
    `window` requests are under way at once. Raises ValueError for parameters out of range or a group that is taken.
    """
    def __init__(
        self,
        nic: Nic,
        port: int,
        executor: _ScheduleExecutor,
        *,
        operation: str,
        requests: int,
        cells: int = 1,
        window: int = 1,
        addend: int = 1,
        group_id: int,
        epoch: int,
        q_key: int,
        member: int,
        destination_mac: str,
        destination_ip: str,
        group_ip: str,
        retransmission_timeout_ps: int,
        source_udp_port: int = 49152,
        timeout_backoff_limit: int = 5,
        retry_limit: int = 30,
    ) -> None: ...
    def cancel(self) -> None:
        """End the run, if it has not ended."""
    def counters(self) -> ServiceCounters:
        """What it has sent and received."""
    def records(self) -> ServiceRecords:
        """Columns of all requests, in their order; those without an answer have finished at 0."""
    def retransmitted_packets(self) -> int:
        """Requests sent again."""
    def start(self, start_ps: int = 0) -> None:
        """Send the first request at start_ps (now, if that is past). RuntimeError the second time."""
    def status(self) -> RunStatus:
        """The run's state; nodes are requests."""

class IpStack:
    """The IP stack of a host, for all frames at its NIC that are not RoCEv2's.

    It answers ARP, neighbour solicitations and ICMP echo requests, and reports closed UDP ports.
    """
    def __init__(self, nic: Nic) -> None: ...
    def add_interface(self, port: int, *, mtu_bytes: int = 1500, queue_packets: int = 1000) -> None:
        """Make a port of the NIC an interface, with the port's addresses.

        `mtu_bytes` is that of IP packets; `queue_packets` may wait in each class. Raises ValueError for a port there is
        not, or that is one already.
        """
    def add_neighbour(self, address: str, mac: str, *, interface: int = 0) -> None:
        """An entry that no message changes."""
    def add_route(self, prefix: str, prefix_bits: int, *, interface: int = 0, gateway: str | None = None) -> None:
        """Reach a prefix by way of a gateway, or without one on the link itself.

        The longest prefix counts, and of equal ones the first. Raises ValueError for an interface there is not, or too
        many bits.
        """
    def ephemeral_port(self, number: int) -> int:
        """The host's ephemeral port of a number: they begin at one that the NIC's entropy_seed draws."""
    def forget_neighbours(self) -> None:
        """Ask for all neighbours again, but for static entries."""
    def reset_stats(self) -> None: ...
    def stats(self) -> IpStats:
        """What has arrived and was sent, and what was dropped, by reason."""

class DatagramLog:
    """Keeps the datagrams that arrive at a UDP port of a stack, as long as it exists."""
    def __init__(self, stack: IpStack, port: int, *, most_datagrams: int, most_bytes: int) -> None:
        """Raises ValueError if the port is taken or RoCEv2's."""
    def entries(self) -> list[tuple[int, bytes]]:
        """Return the time in ps and the payload of every datagram, in order of their arrival."""
    def not_kept(self) -> int:
        """Return how many datagrams came from the first one on that exceeded most_datagrams or most_bytes."""

class Application:
    """A program on a host's IP stack: one run."""
    def close(self) -> None:
        """End the run, if it has not ended; nothing reaches the program any more."""
    def start(self, start_ps: int = 0) -> None:
        """Begin at start_ps (now, if that is past). RuntimeError the second time."""
    def status(self) -> RunStatus:
        """The run's state; nodes are what it has to do."""

class EchoClient(Application):
    """ICMP echo requests at an interval, as ping sends them.

    A request that is not answered within `timeout_ps` is lost. Raises ValueError for values out of range.
    """
    def __init__(
        self,
        stack: IpStack,
        executor: _ScheduleExecutor,
        *,
        destination: str,
        count: int,
        interval_ps: int,
        timeout_ps: int,
        data_bytes: int = 56,
        dscp: int = 0,
        hop_limit: int = 64,
    ) -> None: ...
    def duplicates(self) -> int: ...
    def records(self) -> EchoRecords:
        """Columns of all requests: `outcome` is lost, answered, time_exceeded, unreachable or not_sent."""

class UdpSource(Application):
    """Datagrams to a UdpSink at a constant rate, all the time or in bursts.

    `rate_bps` is that of Ethernet frames while it sends, `packet_bytes` the size of the IP packet. `bursts` are
    exponential or pareto; '' for none. `stream` names the random numbers. Ends when the sink has confirmed the end, or
    does not. Raises ValueError for values out of range.
    """
    def __init__(
        self,
        stack: IpStack,
        executor: _ScheduleExecutor,
        *,
        destination: str,
        port: int,
        rate_bps: int,
        packet_bytes: int,
        duration_ps: int,
        dscp: int = 0,
        ecn: int = 0,
        bursts: str = "",
        mean_on_ps: int = 0,
        mean_off_ps: int = 0,
        pareto_shape: float = 1.5,
        stream: str = "",
    ) -> None: ...
    def not_sent_packets(self) -> int:
        """Of those, what never left the host: no route, a full queue, or nobody had the next hop's MAC."""
    def packets(self) -> int:
        """Datagrams with data that were to be sent."""
    def was_confirmed(self) -> bool:
        """Whether the sink has heard of the end."""

class UdpSink(Application):
    """Counts and times the datagrams of one UdpSource. Raises ValueError if the port is taken."""
    def __init__(self, stack: IpStack, executor: _ScheduleExecutor, *, source: str, port: int) -> None: ...
    def delays_ps(self) -> numpy.typing.NDArray[numpy.int64]:
        """One-way, of each datagram, in the order of their arrival."""
    def last_ps(self) -> int: ...
    def stats(self) -> UdpSinkStats: ...

class FrameReplay(Application):
    """Sends frames, each so many picoseconds after the start.

    Raises ValueError if there are none, or their times decrease.
    """
    def __init__(
        self,
        stack: IpStack,
        executor: _ScheduleExecutor,
        interface: int,
        frames: collections.abc.Sequence[tuple[int, bytes]],
    ) -> None: ...
    def not_sent_packets(self) -> int:
        """What found the queue at the NIC full."""
    def sent_bytes(self) -> int: ...

class HostScript(Application):
    """A program in Python that sees every frame that is not RoCEv2's, and sends any.

    It ends after `duration_ps`, or by end().
    """
    def __init__(
        self,
        stack: IpStack,
        executor: _ScheduleExecutor,
        *,
        duration_ps: int,
        on_start: collections.abc.Callable[[], object],
        on_frame: collections.abc.Callable[[int, bytes], object],
        on_wake: collections.abc.Callable[[], object],
        on_end: collections.abc.Callable[[], object],
    ) -> None: ...
    def end(self) -> None: ...
    def send(self, interface: int, frame: bytes) -> bool:
        """False if the queue at the NIC was full."""
    def wake_at(self, time_ps: int) -> None:
        """Call on_wake at a time, in place of the one asked for before."""

class _ParameterClient(QueuePair):
    pass

class ParameterClient(_ParameterClient):
    """A worker's requests to a parameter store, one run of them: pulls of blocks, and pushes.

    `window` requests, a power of two, are under way at once. Raises ValueError for parameters out of range.
    """
    def __init__(
        self,
        nic: Nic,
        port: int,
        executor: _ScheduleExecutor,
        *,
        blocks: numpy.typing.NDArray[numpy.uint32],
        pushes: numpy.typing.NDArray[numpy.bool],
        window: int,
        group_id: int,
        epoch: int,
        q_key: int,
        client: int,
        destination_mac: str,
        destination_ip: str,
        retransmission_timeout_ps: int,
    ) -> None: ...
    def cancel(self) -> None:
        """End the run, if it has not ended."""
    def records(self) -> ParameterRecords:
        """Columns of all requests, in their order."""
    def retransmitted_packets(self) -> int:
        """Requests sent again."""
    def spoilt_blocks(self) -> int:
        """Answers whose block is no contents that anybody writes."""
    def start(self, start_ps: int = 0) -> None:
        """Send the first request at start_ps (now, if that is past). RuntimeError the second time."""
    def status(self) -> RunStatus:
        """The run's state; nodes are requests."""

class _ParameterStore(QueuePair):
    pass

class ParameterStore(_ParameterStore):
    """A host's versioned blocks, which clients pull and push. `own_ip` is of the IP version of its clients."""
    def __init__(
        self,
        nic: Nic,
        port: int,
        *,
        blocks: int,
        clients: int,
        window: int,
        group_id: int,
        epoch: int,
        q_key: int,
        destination_mac: str,
        own_ip: str,
    ) -> None: ...
    def counters(self) -> ParameterStoreCounters:
        """What it has answered."""

class CmConnections:
    """Communication management of one device without I/O: messages, times and calls go in."""
    def __init__(self, node_guid: int, *, ack_delay: int = 15, seed: int = 1) -> None: ...
    def __len__(self) -> int: ...
    def accept(
        self,
        now_ps: int,
        id: int,
        *,
        qpn: int,
        starting_psn: int = 0,
        responder_resources: int = 1,
        initiator_depth: int = 1,
        private_data: bytes = b"",
    ) -> int:
        """Send a REP; returns 0 or an errno, as the others."""
    def advance(self, now_ps: int) -> None:
        """Do what is due."""
    def answer_disconnect(self, now_ps: int, id: int) -> int:
        """Send a DREP."""
    def answer_service(
        self, now_ps: int, id: int, *, status: int = 0, qpn: int = 0, qkey: int = 0, private_data: bytes = b""
    ) -> int:
        """Send a SIDR_REP."""
    def confirm(self, now_ps: int, id: int) -> int:
        """Send an RTU."""
    def connect(
        self,
        now_ps: int,
        *,
        local: bytes,
        remote: bytes,
        service_id: int,
        qpn: int,
        starting_psn: int = 0,
        responder_resources: int = 1,
        initiator_depth: int = 1,
        transport: int = 0,
        private_data: bytes = b"",
    ) -> int:
        """Send a REQ; returns the connection's ID, 0 if there is no room."""
    def connection(self, id: int) -> dict[str, object] | None:
        """State and facts; None once destroyed."""
    def copy(self) -> CmConnections:
        """One that goes on from the same state."""
    def destroy(self, now_ps: int, id: int, quietly: bool = False) -> None: ...
    def disconnect(self, now_ps: int, id: int) -> int:
        """Send a DREQ."""
    def end_listen(self, service_id: int) -> None: ...
    def establish(self, now_ps: int, id: int) -> int:
        """A packet has come before the RTU."""
    def listen(self, service_id: int) -> None: ...
    def receive(self, now_ps: int, *, local: bytes, remote: bytes, mad: bytes) -> None: ...
    def reject(self, now_ps: int, id: int, *, reason: int = 28, private_data: bytes = b"") -> int:
        """Send a REJ."""
    def resolve_service(
        self, now_ps: int, *, local: bytes, remote: bytes, service_id: int, private_data: bytes = b""
    ) -> int:
        """Send a SIDR_REQ; returns as connect()."""
    def take_events(self) -> list[tuple[str, int, dict[str, object]]]:
        """Kind, the connection's ID and the message of each."""
    def take_outgoing(self) -> list[tuple[int, bytes, bytes, bytes]]:
        """Port, own GID, the other's GID and the 256 bytes of each message."""
    @property
    def counters(self) -> dict[str, object]: ...
    @property
    def next_deadline_ps(self) -> int | None: ...

class CmHost:
    """A host's /dev/infiniband/rdma_cm without a network.

    Its clock stands where `now_ps` is put; what it sends is kept until it is taken.
    """
    def __init__(
        self,
        node_guid: int,
        ports: collections.abc.Sequence[tuple[int, int, collections.abc.Sequence[bytes]]],
        *,
        ack_delay: int = 15,
        seed: int = 1,
        asks_kernel: bool = False,
    ) -> None:
        """Ports: number, active MTU as 1 to 5, and GIDs. asks_kernel: other routes are this namespace's."""
    def add_channel(self, socket: int) -> bool:
        """Take over a program's connection; the descriptor is closed at its end."""
    def add_route(self, destination: bytes, port: int = 1) -> None: ...
    def advance(self) -> None:
        """Do what is due."""
    def close(self, client: int) -> None: ...
    def command(
        self, client: int, bytes: bytes, option: bytes = b"", source: int | None = None
    ) -> tuple[int, bytes, bool]:
        """Returns an errno, the answer, and whether no event waits any more."""
    def has_events(self, client: int) -> bool: ...
    def listens(self, service_id: int) -> bool: ...
    def open(self) -> int:
        """Returns a new client's number."""
    def receive(self, port: int, local: bytes, remote: bytes, mad: bytes) -> None: ...
    def serve_channel(self, socket: int) -> bool:
        """Serve what has come; returns False once the program has gone."""
    def take_groups(self) -> list[tuple[bool, int, bytes]]:
        """Multicast groups that were joined (True) and left, with port and GID."""
    def take_outgoing(self) -> list[tuple[int, bytes, bytes, bytes]]:
        """Port, own GID, the other's GID and the 256 bytes of each message."""
    def take_signalled(self) -> list[int]:
        """Clients with events that they have not been told of."""
    @property
    def channels(self) -> int: ...
    @property
    def connections(self) -> int: ...
    @property
    def counters(self) -> dict[str, object]: ...
    @property
    def ids(self) -> int: ...
    @property
    def next_deadline_ps(self) -> int | None: ...
    @property
    def now_ps(self) -> int: ...
    @now_ps.setter
    def now_ps(self, arg1: int) -> None: ...

class Probe:
    """Records what components of an engine report; one an engine, which owns it. Times in ps, sizes in bytes.

    Rows beyond row_limit of a table are counted and not kept. Raises RuntimeError if the engine has a probe.
    """
    @staticmethod
    def of(port: TransmitPort) -> Probe:
        """Return the probe of the port's engine; makes it if there is none."""
    def __init__(self, engine: Engine, *, row_limit: int = 20000000) -> None: ...
    def rows_lost(self) -> dict[str, int]:
        """Rows beyond the limit, by table."""
    def sample(self, port: TransmitPort, place: int) -> None:
        """Make a port's queues and what it has sent series of a place. RuntimeError before start_sampling."""
    def start_sampling(self, interval_ps: int) -> None:
        """Sample ports at every multiple of the interval. ValueError below 1; RuntimeError if it has begun."""
    def take(self, until_ps: int = 0) -> dict[str, dict[str, numpy.typing.NDArray[numpy.int64]]]:
        """Hand over all that was recorded since the last call: columns by name, by table.

        Ports are sampled once more at until_ps (the engine's now, if that is later): all events up to it have been
        served.

        drops: time_ps, place, reason (a code of `drop_names`), priority_class, size_bytes (0: unknown; class -1:
        none). pauses: place, priority_class, begin_ps, end_ps. flows, a message of a queue pair each: source,
        destination, plane, run, step, size_bytes, start_ps (posted), end_ps (acknowledged), retransmitted_packets,
        status (index in `completion_status_names`). telemetry, a row per hop: time_ps, source, destination, plane,
        psn, path_id, hop, rate_code, queue_cells, tx_units, timestamp_ns. steps: rank, run, step, kind (0 write, 1
        wait, 2 reduce, 3 copy, 4 aggregate, 5 delay), peer, plane, size_bytes, start_ps, end_ps. queues, a row
        where a sample differs from the series' last: time_ps, place, priority_class, queue_bytes,
        transmitted_bytes.
        """
    @typing.overload
    def watch(self, component: TransmitPort, place: int) -> None:
        """Record drops and pauses of the component, under this number for the place."""
    @typing.overload
    def watch(self, component: Link, place: int) -> None: ...
    @typing.overload
    def watch(self, component: Switch, place: int) -> None: ...

class TcpCongestionControl:
    """Decides a TCP connection's window; its events, for tests and models."""
    def __init__(
        self,
        name: str,
        *,
        segment_bytes: int,
        window_segments: int = 10,
        parameters: collections.abc.Mapping[str, float] = {},
    ) -> None: ...
    def on_acknowledgement(
        self,
        now_ps: int,
        acknowledged_bytes: int,
        *,
        acknowledged: int = 0,
        next: int = 0,
        smoothed_round_trip_ps: int = 0,
        round_trip_ps: int = 0,
        ecn_echo: bool = False,
        window_limited: bool = True,
        grows: bool = True,
    ) -> None: ...
    def on_ecn_echo(self, now_ps: int, flight_bytes: int) -> None: ...
    def on_loss(self, now_ps: int, flight_bytes: int) -> None: ...
    def on_timeout(self, now_ps: int, flight_bytes: int, again: bool = False) -> None: ...
    @property
    def marked_share(self) -> float:
        """DCTCP's alpha."""
    @property
    def name(self) -> str: ...
    @property
    def slow_start_threshold_bytes(self) -> int: ...
    @property
    def window_bytes(self) -> int: ...

class TcpConnection:
    """A TCP connection without I/O: segments and times go in, segments and a deadline come out.

    Segments are bytes from TCP's header on, with a checksum of 0. After each call take_segment() is to be called
    until it returns None. Raises ValueError for parameters out of range, naming the valid ones.
    """
    def __init__(
        self,
        *,
        congestion_control: str = "newreno",
        parameters: collections.abc.Mapping[str, float] = {},
        source_port: int = 1,
        destination_port: int = 2,
        initial_sequence: int = 0,
        maximum_segment_bytes: int = 1460,
        sack: bool = True,
        timestamps: bool = True,
        window_scaling: bool = True,
        ecn: bool = False,
        nagle: bool = True,
        rack_tlp: bool = True,
        receive_buffer_bytes: int = 4194304,
        initial_window_segments: int = 10,
        delayed_acknowledgement_ps: int = 40000000000,
        acknowledge_every_segments: int = 2,
        initial_timeout_ps: int = 1000000000000,
        least_timeout_ps: int = 200000000000,
        most_timeout_ps: int = 120000000000000,
        most_retransmissions: int = 15,
        time_wait_ps: int = 60000000000000,
    ) -> None: ...
    def abort(self) -> None:
        """RST."""
    def close(self) -> None:
        """FIN goes after all that was written."""
    def connect(self) -> None: ...
    def listen(self) -> None: ...
    def on_segment(self, now_ps: int, segment: str, ecn: int = 0) -> None:
        """ecn: the two ECN bits of the IP header, 3: marked (CE). Raises ValueError for what is no segment."""
    def on_timer(self, now_ps: int) -> None: ...
    def read(self, most: int = 18446744073709551615) -> bytes:
        """Bytes that have arrived in order."""
    def take_segment(self, now_ps: int) -> tuple[bytes, int] | None:
        """The next segment and its ECN bits."""
    def write(self, data: str) -> None: ...
    @property
    def ecn_in_use(self) -> bool: ...
    @property
    def end(self) -> str:
        """Why it is closed: closed, reset, refused, timed_out, aborted; none while it is not."""
    @property
    def in_flight_bytes(self) -> int: ...
    @property
    def in_recovery(self) -> bool: ...
    @property
    def marked_share(self) -> float:
        """DCTCP's alpha."""
    @property
    def next_deadline_ps(self) -> int | None: ...
    @property
    def peer_finished(self) -> bool: ...
    @property
    def pipe_bytes(self) -> int:
        """What is believed to be under way (RFC 6675, section 4)."""
    @property
    def receiver_counters(self) -> TcpReceiverCounters: ...
    @property
    def room_in_receiver_bytes(self) -> int:
        """Of the window that the receiver has offered; negative if it has shrunk."""
    @property
    def segment_bytes(self) -> int:
        """Of a full segment's data."""
    @property
    def sender_counters(self) -> TcpSenderCounters: ...
    @property
    def slow_start_threshold_bytes(self) -> int: ...
    @property
    def smoothed_round_trip_ps(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def timeout_ps(self) -> int: ...
    @property
    def window_bytes(self) -> int: ...

class TcpRetransmissionTimeout:
    """RFC 6298, section 2."""
    def __init__(
        self, *, initial_ps: int = 1000000000000, least_ps: int = 200000000000, most_ps: int = 120000000000000
    ) -> None: ...
    def add_round_trip(self, round_trip_ps: int) -> None: ...
    def back_off(self) -> None: ...
    @property
    def round_trip_variation_ps(self) -> int: ...
    @property
    def smoothed_round_trip_ps(self) -> int: ...
    @property
    def timeout_ps(self) -> int: ...

class TcpProtocol:
    """TCP on a host's IP stack."""
    def __init__(self, stack: IpStack) -> None: ...
    def stats(self) -> TcpCounters:
        """Segments that no connection has taken, by reason."""

class TcpFlowConfig:
    """A TCP flow, seen from one of its ends.

    size_bytes 0: as much as goes in duration_ps. What acknowledgements allow to be sent leaves up to send_jitter_ps
    later. peer and source_port of an end that receives are of whom it takes, by default of anyone.
    """
    def __init__(
        self,
        flow: int,
        *,
        peer: str = "",
        port: int,
        source_port: int = 0,
        start_ps: int = 0,
        size_bytes: int = 0,
        duration_ps: int = 0,
        dscp: int = 0,
        congestion_control: str = "cubic",
        parameters: collections.abc.Mapping[str, float] = {},
        maximum_segment_bytes: int = 1460,
        ecn: bool = False,
        sack: bool = True,
        receive_buffer_bytes: int = 4194304,
        initial_window_segments: int = 10,
        least_timeout_ps: int = 200000000000,
        delayed_acknowledgement_ps: int = 40000000000,
        acknowledge_every_segments: int = 2,
        send_jitter_ps: int = 0,
    ) -> None: ...

class TcpFlows(Application):
    """A host's part in TCP flows: those that it sends, and those that it receives.

    sample_interval_ps: senders' windows are sampled no more often; 0: not at all. Raises ValueError for a port that is
    taken or values out of range.
    """
    def __init__(
        self,
        stack: IpStack,
        executor: _ScheduleExecutor,
        protocol: TcpProtocol,
        *,
        outgoing: collections.abc.Sequence[TcpFlowConfig],
        incoming: collections.abc.Sequence[TcpFlowConfig],
        sample_interval_ps: int = 0,
    ) -> None: ...
    def records(self) -> list[TcpFlowRecord]:
        """Of each flow, the outgoing ones first."""
    def samples(self) -> TcpWindowSamples:
        """Columns of senders' windows over time."""

def bandwidth_delay_product_bytes(rate_bps: int, round_trip_ps: int) -> int:
    """Bytes on the way in a round trip, rounded up."""

def block_exponent(block: numpy.typing.NDArray[numpy.float32]) -> int:
    """Smallest e with |x| < 2^e for all elements, -149 for zeros. Raises ValueError for NaN and infinity."""

def build_cm(message: dict[str, object]) -> bytes:
    """The 256 bytes of a message as parse_cm() returns it."""

def build_mrc_as_length(headers: RoceHeaders, payload_bytes: int) -> bytes:
    """An MRC packet as build_packet() makes it, with zeros in place of payload, pad and iCRC."""

def build_packet(headers: RoceHeaders, payload: bytes = b"") -> bytes:
    """An Ethernet frame (without FCS): lengths, pad, checksums and iCRC computed, UDP checksum 0.

    Headers of MRC (docs/spec/mrc.md) stand under "mrc", which MRC's opcodes need even if it is empty. MRC reserves
    solicited, migrated, fecn and becn of the BTH: they are sent as 0. mrc.entropy sets source_udp_port and the low
    half of flow_label.

    Fields left out have RoCEv2's usual values (DSCP 26, ECT(0), hop limit 64, P_Key 0xFFFF) or 0. Raises
    ValueError for unknown fields, values that do not fit, or a payload that the opcode does not carry.
    """

def build_uet(headers: list[tuple[str, dict[str, int]]], payload: bytes = b"") -> bytes:
    """A packet of Ultra Ethernet Transport, as UDP carries it (docs/spec/uet.md).

    `headers` are pairs of a name in weft.wire.HEADERS and of numbers by the described names; those left out have
    their defaults. Raises ValueError for unknown names, values that do not fit, and headers that a reader would not
    read as these.
    """

def cm_messages() -> list[str]:
    """Names of connection management's messages."""

def cm_parse_error(mad: bytes) -> str:
    """What parse_cm() would refuse the bytes for: "none", "wrong_length", "wrong_class" …"""

def combine_elements(
    destination: typing_extensions.Buffer | numpy.typing.NDArray[typing.Any],
    source: typing_extensions.Buffer | numpy.typing.NDArray[typing.Any],
    dtype: str,
    operation: str,
) -> None:
    """Reduce each element of the source into that of the destination, as ranks do."""

def completion_status_names() -> list[str]:
    """Return the names of a completion's status, in the order of their numbers."""

def congestion_control_kind(name: str) -> CongestionControlKind:
    """A congestion control by its name. Raises ValueError for an unknown one, naming the valid ones."""

def congestion_control_names() -> list[str]: ...
def congestion_controls() -> list[CongestionControlKind]:
    """All congestion controls, in alphabetical order."""

def congestion_parameters_in_force(
    name: str,
    *,
    ack_interval_packets: int = 1,
    parameters: collections.abc.Mapping[str, float] = {},
    preset: str = "",
    **kwargs: typing.Unpack[PathArguments],
) -> dict[str, float]:
    """All parameters of what make_congestion_control() would make, those left out by their defaults. Raises as it."""

def counted_drops() -> dict[str, dict[str, str]]:
    """Return which drops statistics count: names, as in `drop_names`, by statistic, by type of `record_types`."""

def crc32(data: bytes, *, portable: bool = False) -> int:
    """CRC-32 of IEEE 802.3, as zlib.crc32; portable: by tables whatever the CPU offers."""

def dequantise_block(
    sums: numpy.typing.NDArray[numpy.int32], exponent: int, rank_count: int
) -> numpy.typing.NDArray[numpy.float32]:
    """Floats that sums of quantised blocks stand for."""

def divide_elements(
    data: typing_extensions.Buffer | numpy.typing.NDArray[typing.Any], dtype: str, divisor: int
) -> None:
    """Divide elements: integers rounded towards zero, floats to nearest."""

def drop_names() -> dict[int, str]:
    """Return what the codes in the column `reason` of drops mean."""

def full_frame_bytes(
    path_mtu_bytes: int, *, is_ipv6: bool = False, telemetry: bool = False, retransmission: str = "go-back-n"
) -> int:
    """Frame of a data packet with a full payload, from Ethernet to iCRC (go-back-N: within a message)."""

def header_fields() -> dict[str, list[tuple[str, int]]]:
    """Names and widths in bits of the fields that the engine reads and writes, in wire order, by header.

    Headers have the names of weft.wire.HEADERS; those of fields may differ.
    """

def hop_latency_edges_ns() -> list[int]:
    """Return the upper edges of the buckets of HopLatencies; one bucket more is without."""

def icrc(ip_packet: bytes) -> int:
    """Invariant CRC over a packet from its IP header up to, and without, the iCRC itself (annex A17.3.3).

    It is sent little-endian. Raises ValueError if IP, UDP and BTH headers are not complete.
    """

def is_time_hello(message: bytes) -> bool:
    """Whether it is the first message of a process whose library is of this build."""

def load_congestion_controls(library: str, prefix: str) -> list[str]:
    """Load a library with users' congestion controls, for good, and return their names.

    Other functions know each by prefix and its name. Raises ValueError if it cannot be loaded.
    """

def make_congestion_control(
    name: str,
    *,
    ack_interval_packets: int = 1,
    parameters: collections.abc.Mapping[str, float] = {},
    preset: str = "",
    **kwargs: typing.Unpack[PathArguments],
) -> CongestionControl:
    """A congestion control for a path: rate of the sender's port, idle round trip, frame of a full packet.

    ack_interval_packets: how many packets are acknowledged together; nearest_round_trip_ps and nearest_hops: of the
    nearest peer's path, and the routers on it; hop_round_trip_ps: what each router more adds; int_rates_bps: what the
    16 rate codes of the fabric's INT stand for, by default the standard ones.

    Parameters left out are the preset's (empty: the default one), and fit the path; their names are those that the
    control declares (congestion_control_kind). Raises ValueError for unknown names and values
    out of range, naming the valid ones.
    """

def make_path_choice(
    name: str, seed: int, parameters: collections.abc.Mapping[str, float] = {}, **kwargs: typing.Unpack[PathArguments]
) -> PathChoice:
    """A choice of path for one queue pair on a path with these properties (see make_congestion_control()).

    What it draws repeats with the seed. Raises ValueError for an unknown name or parameter, or a value out of
    range, naming the valid ones.
    """

def mrc_defaults() -> MrcOptions:
    """Defaults of MRC's options."""

def mrc_endpoint_stats(nic: Nic) -> MrcEndpointCounters:
    """What a NIC has counted of endpoint operations, zeros without a queue pair of MRC."""

def mrc_full_frame_bytes(path_mtu_bytes: int, *, is_ipv6: bool = False, encapsulated: bool = False) -> int:
    """The same of MRC; encapsulated: in an outer IPv6 header."""

def packet_ends() -> dict[str, str]:
    """What packets that left are, by the keys of `left` in packet conservation."""

def packet_message(packet: tuple[int, int, bytes, int, bool, bool, int, int]) -> bytes:
    """Return how processes pass on a packet.

    It is (delay line, due in ps, bytes, virtual bytes, whether it was made with a length, damaged, virtual lane,
    kind of traffic).
    """

def packet_origins() -> dict[str, str]:
    """What packets that entered are, by the keys of `entered` in packet conservation."""

def packets_of_message(message: bytes) -> list[tuple[int, int, bytes, int, bool, bool, int, int]]:
    """Return the packets of a message, as packet_message() takes them. Raises ValueError for any other bytes."""

def parse_cm(mad: bytes) -> dict[str, object]:
    """A message of communication management as a dictionary. Raises ValueError as cm_parse_error() says."""

def parse_error(frame: bytes) -> str:
    """What parse_packet() would refuse the frame for: "none", "not_roce", "truncated", "bad_icrc" …"""

def parse_packet(frame: bytes) -> tuple[RoceHeaders, bytes]:
    """Headers and payload (without pad) of an Ethernet frame.

    Of an MRC packet that a switch has trimmed, mrc.trimmed is true and the payload empty; its iCRC is not checked.
    Raises ValueError, ending in parse_error()'s name, unless the frame is valid.
    """

def parse_uet(datagram: bytes) -> tuple[list[tuple[str, dict[str, int]]], bytes]:
    """Headers, as build_uet() takes them, and payload of a packet of Ultra Ethernet Transport.

    Raises ValueError, ending in uet_parse_error()'s name, unless the packet is valid.
    """

def path_choice_kind(name: str) -> PathChoiceKind:
    """A choice of path by its name. Raises ValueError for an unknown one, naming the valid ones."""

def path_choice_names() -> list[str]: ...
def path_choices() -> list[PathChoiceKind]:
    """All choices of path, in alphabetical order."""

def path_parameters_in_force(
    name: str, parameters: collections.abc.Mapping[str, float] = {}, **kwargs: typing.Unpack[PathArguments]
) -> dict[str, float]:
    """All parameters of what make_path_choice() would make, by name."""

def pfc_headroom_bytes(*, rate_bps: int, delay_ps: int, frame_bytes: int, response_ps: int = 0) -> int:
    """Return the bytes that may still come after a port has decided to pause a class (802.1Qbb, annex O)."""

def python_congestion_control(
    name: str,
    *,
    window_bytes: collections.abc.Callable[[], object],
    pacing_rate_bps: collections.abc.Callable[[], object] | None,
    next_deadline_ps: collections.abc.Callable[[], object] | None,
    on_packet_sent: collections.abc.Callable[[int, int, bool], object] | None,
    on_acknowledgement: collections.abc.Callable[[Acknowledgement], object],
    on_congestion_notification: collections.abc.Callable[[int], object] | None,
    on_loss: collections.abc.Callable[[int, bool], object] | None,
    on_deadline: collections.abc.Callable[[int], object] | None,
) -> CongestionControl:
    """A congestion control that calls these; None stands for a method that there is not."""

def python_path_choice(
    name: str,
    *,
    entropy: collections.abc.Callable[[int, int, bool], object],
    on_delivered: collections.abc.Callable[[int, int, int, bool], object] | None,
    on_lost: collections.abc.Callable[[int, int], object] | None,
    on_congestion_notification: collections.abc.Callable[[int], object] | None,
) -> PathChoice:
    """A choice of path that calls these; None stands for a method that there is not."""

def quantise_block(
    block: numpy.typing.NDArray[numpy.float32], exponent: int, rank_count: int
) -> numpy.typing.NDArray[numpy.int32]:
    """Integers that `rank_count` ranks can add without overflow. All |x| < 2^exponent."""

def rc_defaults() -> RcOptions:
    """Defaults of the options that are numbers."""

def read_tcp_segment(segment: str) -> TcpSegmentFields:
    """The header's fields. Raises ValueError for what is no segment."""

def record_types() -> dict[str, dict[str, tuple[str, str]]]:
    """Types of dictionaries, by name: for each key its type in Python's notation, and what it means."""

def reset_mrc_endpoint_stats(nic: Nic) -> None: ...
def retransmission_timeout_ps(
    base_round_trip_ps: int, *, round_trips: float = 4.0, wall_clock_floor_ns: int = 0, dilation: float = 1.0
) -> int:
    """The larger of round_trips base round trips and a floor of real time, in emulated time.

    Under a real clock a host's process may run late, so the floor must lie above its jitter.
    """

def rnr_timer_ps(code: int) -> int:
    """What an RNR timer code stands for (InfiniBand, table 45)."""

def serialisation_ps(size_bytes: int, rate_bps: int) -> int:
    """Picoseconds that size_bytes occupy a link of rate_bps (0: none), rounded to the nearest."""

def switch_abi() -> dict[str, int]:
    """Offsets and constants that generated code shares with the switch runtime."""

def switch_runtime_symbols() -> dict[str, int]:
    """Functions that generated code may call, by name."""

def take_mrc_ev_events(nic: Nic, most: int = 4096) -> list[EvEvent]:
    """Take the oldest EV events of a NIC that nobody has taken, at most so many.

    Up to 4,096 wait; further ones are dropped, and counted in the next.
    """

def tcp_congestion_control_names() -> list[str]: ...
def uet_defaults() -> UetOptions:
    """Defaults of UET's options that are numbers."""

def uet_full_frame_bytes(
    path_mtu_bytes: int, *, is_ipv6: bool = False, receiver_credits: bool = False, service: str = "rud"
) -> int:
    """The same of UET."""

def uet_parse_error(datagram: bytes) -> str:
    """What parse_uet() would refuse the packet for: "none", "truncated", "encrypted", "unknown_type" …"""

def verbs_requests() -> list[tuple[str, list[str], list[str]]]:
    """Names of the requests of a verbs provider by number, of their fields and of their answers' fields."""

def withdraw_mrc_ports(nic: Nic, ports: collections.abc.Sequence[int]) -> None:
    """Has queue pairs of MRC leave these ports, as an operator says, here and at all peers; and use all others."""

CM_HELLO_MAGIC: int = 1464028465
CREDIT_BLOCK_BYTES: int = 64
GRH_BYTES: int = 40
MOST_CREDIT_BUFFER_BYTES: int = 131072
TIME_COUNTER_HZ: float = 1000000000.0
TIME_HELLO_BYTES: int = 24
TIME_SOCKET_VARIABLE: str = "WEFT_TIME_SOCKET"
VERBS_MAGIC: int = 6297552303799235170
VERBS_MESSAGE_BYTES: int = 512
VERBS_TYPE_MRC: int = 256
VERBS_VERSION: int = 2
