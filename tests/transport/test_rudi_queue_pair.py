"""Queue pairs of UET with service RUDI: whatever the wire does, all is written, and each packet is answered."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport.rdma_pair import (
    MS,
    PATIENT,
    US,
    Bytes,
    RdmaPair,
    WiredPair,
    cabled_pair,
    fixed_window,
    ideal_wire,
    path_choice,
    random_bytes,
    wired_pair,
)
from tests.transport.test_selective_repeat import done
from tests.transport.test_uet_operations import FATES, rebuilt
from tests.transport.test_uet_queue_pair import ACTIONS, MTU, UDP_AT, Wire, headers_of, trimmed, type_of, with_dscp
from tests.transport.test_uet_reads import BASE, post_reads, readable
from weft.engine import (
    CompletionQueue,
    Engine,
    Link,
    Nic,
    RudiQueuePair,
    TransmitPort,
    UetQueuePair,
    UudQueuePair,
    make_congestion_control,
)
from weft.wire.code_points import DSCP_TRIMMED, DSCP_TRIMMED_LASTHOP

RUDI: dict[str, Any] = {
    "uet_options": {"service": "rudi"},
    "path_mtu_bytes": MTU,
    "retransmission_timeout_ps": 50 * US,
    "reordering_window_ps": 3 * US,
}
REQUEST, RESPONSE = 4, 5
BLOCK = 4096
"""Identifiers that a queue pair takes at once (kBlock in engine/hosts/uet/packet_ids.hpp)."""


def post(pair: WiredPair | RdmaPair, sizes: list[int]) -> tuple[Bytes, Bytes]:
    """Post WRITEs, one after the other through one buffer; returns source and target."""
    source = random_bytes(sum(sizes))
    target = np.zeros_like(source)
    rkey = pair.b.register(target).rkey
    region, offset = pair.a.register(source), 0
    for number, size in enumerate(sizes):
        pair.a.queue_pair.post_write(region, offset, size, offset, rkey, work_id=number)
        offset += size
    return source, target


def all_arrives(pair: WiredPair, wire: Wire, sizes: list[int]) -> None:
    """Send messages of these sizes, and check what both ends then have."""
    source, target = post(pair, sizes)
    pair.run(wire, done(pair, len(sizes)))
    assert np.array_equal(source, target)
    assert pair.b.completions.poll() == []
    assert pair.b.queue_pair.stats()["data_bytes_received"] >= sum(sizes)
    stats = pair.a.queue_pair.stats()
    assert stats["in_flight_bytes"] == stats["outstanding_requests"] == 0
    assert stats["error"] == "success"


@pytest.mark.parametrize("length", [4, pytest.param(6, marks=pytest.mark.slow)])
def test_every_fate_of_the_first_frames_ends_well(length: int) -> None:
    for actions in product(ACTIONS, repeat=length):
        all_arrives(wired_pair(**RUDI, version=6, **PATIENT), Wire(actions), [2 * MTU, 1])


@given(
    actions=FATES,
    sizes=st.lists(st.integers(0, 5 * MTU), min_size=1, max_size=8),
)
@settings(max_examples=100, deadline=None)
def test_whatever_the_wire_does_all_arrives(actions: list[str], sizes: list[int]) -> None:
    all_arrives(wired_pair(**RUDI, version=6, **PATIENT), Wire(actions), sizes)


@pytest.mark.parametrize("version", [4, 6])
def test_faults_of_a_link_cost_time_and_nothing_else(version: int) -> None:
    faults = {"loss": 0.01, "duplicate": 0.01, "delay_probability": 0.02, "extra_delay_ps": 5 * US}
    pair = cabled_pair(**RUDI, **PATIENT, version=version, faults=faults, window_bytes=64 * 1024)
    source, target = post(pair, [300_000] * 4)
    pair.engine.run_for(50 * MS)
    assert np.array_equal(source, target)
    stats = pair.a.queue_pair.stats()
    assert stats["outstanding_requests"] == 0
    assert stats["retransmitted_packets"] > 0
    # Of what came twice, the second is written and answered as the first was.
    assert pair.b.queue_pair.stats()["data_bytes_received"] > 1_200_000
    assert stats["stale_acknowledgements"] > 0


def test_each_packet_is_answered_by_its_identifier_and_nothing_is_set_up() -> None:
    pair = wired_pair(**RUDI, version=6)
    seen: dict[str, list[list[dict[str, Any]]]] = {"a": [], "b": []}

    def wire(sender: str, frame: bytes) -> list[bytes]:
        seen[sender].append(headers_of(frame))
        return [frame]

    source, target = post(pair, [5 * MTU, 1])
    pair.run(wire, done(pair, 2))
    assert np.array_equal(source, target)
    assert [[each["name"] for each in headers] for headers in seen["a"]] == [
        ["UETRudi", "UETStandard"],
        *[["UETRudi", "UETContinuation"]] * 4,
        ["UETRudi", "UETStandard"],
    ]
    assert [headers[0]["type"] for headers in seen["a"]] == [REQUEST] * 6
    assert [[each["name"] for each in headers] for headers in seen["b"]] == [["UETRudi", "UETResponse"]] * 6
    assert [headers[0]["pkt_id"] for headers in seen["b"]] == [headers[0]["pkt_id"] for headers in seen["a"]]
    assert len({headers[0]["pkt_id"] for headers in seen["a"]}) == 6
    assert pair.b.queue_pair.uet_stats()["pdcs_accepted"] == 0


def reads_arrive(pair: WiredPair, wire: Wire, sizes: list[int]) -> None:
    source, target = post_reads(pair, sizes)
    pair.run(wire, done(pair, len(sizes)))
    assert np.array_equal(source, target)
    assert pair.b.completions.poll() == []
    stats = pair.a.queue_pair.stats() | pair.a.queue_pair.uet_stats()
    assert stats["in_flight_bytes"] == stats["outstanding_requests"] == stats["wrong_responses"] == 0
    assert stats["data_bytes_received"] >= sum(sizes)


@pytest.mark.parametrize("length", [4, pytest.param(6, marks=pytest.mark.slow)])
def test_every_fate_of_the_first_frames_of_reads_ends_well(length: int) -> None:
    for actions in product(ACTIONS, repeat=length):
        reads_arrive(wired_pair(**RUDI, version=6, **PATIENT), Wire(actions), [2 * MTU, 1])


@given(
    actions=FATES,
    sizes=st.lists(st.integers(0, 5 * MTU), min_size=1, max_size=8),
    limit=st.integers(1, 4),
)
@settings(max_examples=100, deadline=None)
def test_whatever_the_wire_does_all_that_is_read_arrives(actions: list[str], sizes: list[int], limit: int) -> None:
    pair = wired_pair(**RUDI, version=6, max_outstanding_reads=limit, **PATIENT)
    reads_arrive(pair, Wire(actions), sizes)


def test_reads_and_writes_both_ways_share_a_faulty_link() -> None:
    faults = {"loss": 0.01, "duplicate": 0.01, "delay_probability": 0.02, "extra_delay_ps": 5 * US}
    pair = cabled_pair(**RUDI, **PATIENT, faults=faults, window_bytes=64 * 1024)
    written = [post(pair, [100_000] * 2)]
    read = post_reads(pair, [100_000] * 2)
    source, target = random_bytes(200_000, 3), np.zeros(200_000, np.uint8)
    pair.b.queue_pair.post_write(pair.b.register(source), 0, 200_000, 0, pair.a.register(target).rkey, work_id=9)
    pair.engine.run_for(50 * MS)
    for from_, to in [*written, read, (source, target)]:
        assert np.array_equal(from_, to)
    for host in (pair.a, pair.b):
        stats = host.queue_pair.stats()
        assert stats["outstanding_requests"] == 0
        assert stats["error"] == "success"


def test_each_packet_of_a_read_is_answered_with_data_by_its_identifier() -> None:
    pair = wired_pair(**RUDI, version=6)
    seen: dict[str, list[list[dict[str, Any]]]] = {"a": [], "b": []}

    def wire(sender: str, frame: bytes) -> list[bytes]:
        seen[sender].append(headers_of(frame))
        return [frame]

    source, target = post_reads(pair, [2 * MTU + 3])
    pair.run(wire, done(pair, 1))
    assert np.array_equal(source, target)
    assert [[each["name"] for each in headers] for headers in seen["b"]] == [["UETRudi", "UETResponseData"]] * 3
    assert [headers[0]["pkt_id"] for headers in seen["b"]] == [headers[0]["pkt_id"] for headers in seen["a"]]
    assert [headers[1]["message_offset"] for headers in seen["b"]] == [0, MTU, 2 * MTU]
    assert [headers[1]["payload_length"] for headers in seen["b"]] == [MTU, MTU, 3]


@pytest.mark.parametrize("dscp", [DSCP_TRIMMED, DSCP_TRIMMED_LASTHOP])
def test_data_of_a_read_that_is_trimmed_is_asked_for_again_at_once(dscp: int) -> None:
    pair = wired_pair(**RUDI, version=6, path_choice=path_choice("spray", 1))

    def wire(sender: str, frame: bytes) -> list[bytes]:
        first = sender == "b" and not headers_of(frame)[0]["retx"]
        return [trimmed(frame, dscp)] if first else [frame]

    source, target = post_reads(pair, [MTU])
    pair.run(wire, done(pair, 1))
    assert np.array_equal(source, target)
    stats = pair.a.queue_pair.stats() | pair.a.queue_pair.uet_stats()
    assert stats["responses_trimmed"] == stats["retransmitted_packets"] == 1
    assert stats["timeouts"] == 0


def test_memory_that_may_not_be_read_is_refused() -> None:
    pair = wired_pair(**RUDI, version=6)
    rkey = pair.b.register(np.zeros(MTU, np.uint8)).rkey
    pair.a.queue_pair.post_read(None, 0, MTU, 0, rkey, work_id=1)
    pair.run(ideal_wire, lambda: pair.a.queue_pair.stats()["outstanding_requests"] == 0)
    assert [each["status"] for each in pair.a.completions.poll()] == ["remote_access_error"]
    assert pair.b.queue_pair.stats()["responder_error"] == "success"


def test_memory_that_is_deregistered_while_it_is_read_is_refused() -> None:
    """Requests have been granted whose data have not left."""
    pair = wired_pair(**RUDI, version=6, window_bytes=1 << 20)
    source = random_bytes(2000 * MTU)
    region = readable(pair.b, source)
    pair.a.queue_pair.post_read(None, 0, len(source), BASE, region.rkey, work_id=1)
    while not pair.b.queue_pair.stats()["data_packets_sent"]:
        pair.step(ideal_wire)
    region.deregister()
    pair.run(ideal_wire, lambda: pair.a.queue_pair.stats()["outstanding_requests"] == 0)
    assert [each["status"] for each in pair.a.completions.poll()] == ["remote_access_error"]
    stats = pair.b.queue_pair.stats()
    assert stats["data_packets_sent"] < 2000
    assert stats["responder_error"] == "success"


def test_answers_that_are_none_are_dropped_and_counted() -> None:
    """Data for a WRITE, and a bare response to a READ: the packets are sent again."""
    pair = wired_pair(**RUDI, version=6)
    source, target = post(pair, [MTU])
    read_source, read_target = post_reads(pair, [MTU])
    answers: dict[str, bytes] = {}
    wrong: list[str] = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        if sender == "a" or len(wrong) == 2:
            return [frame]
        name = headers_of(frame)[1]["name"]
        answers[name] = frame
        if len(answers) < 2:
            return []
        # Each answer has the other's identifier.
        for name, other in (("UETResponse", "UETResponseData"), ("UETResponseData", "UETResponse")):
            mixed = rebuilt(answers[name], {"pkt_id": headers_of(answers[other])[0]["pkt_id"]})
            wrong.append(name)
            pair.engine.inject(pair.a.nic, 0, mixed)
        return []

    pair.run(wire, done(pair, 2))
    assert np.array_equal(source, target)
    assert np.array_equal(read_source, read_target)
    stats = pair.a.queue_pair.stats() | pair.a.queue_pair.uet_stats()
    assert stats["wrong_responses"] == 2
    assert stats["retransmitted_packets"] == 2


def test_as_many_reads_are_under_way_as_are_allowed() -> None:
    pair = wired_pair(**RUDI, version=6, max_outstanding_reads=2)
    asked: list[int] = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        if sender == "a":
            asked.append(headers_of(frame)[1]["message_id"])
        return [] if sender == "b" and len(asked) < 3 else [frame]

    post_reads(pair, [MTU] * 5)
    pair.step(wire)
    pair.step(wire)
    assert len(set(asked)) == 2


@pytest.mark.parametrize(("dscp", "code"), [(DSCP_TRIMMED, 1), (DSCP_TRIMMED_LASTHOP, 2)])
def test_a_trimmed_packet_is_sent_again_at_once(dscp: int, code: int) -> None:
    pair = wired_pair(**RUDI, version=6, path_choice=path_choice("spray", 1))
    nacks = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        header = headers_of(frame)[0]
        if header["name"] == "UETNack":
            nacks.append(header)
        first = sender == "a" and not header["retx"]
        return [trimmed(frame, dscp)] if first else [frame]

    source, target = post(pair, [MTU])
    pair.run(wire, done(pair, 1))
    assert np.array_equal(source, target)
    assert [(each["nack_code"], each["nt"], each["spdcid"], each["dpdcid"]) for each in nacks] == [(code, 1, 0, 0)]
    stats = pair.a.queue_pair.stats() | pair.a.queue_pair.uet_stats()
    assert stats["trim_nacks_received"] == stats["retransmitted_packets"] == 1
    assert stats["timeouts"] == 0


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("lost", ["a", "b"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_lost_last_packet_is_repeated_before_the_timeout(is_first: bool, lost: str, times: int) -> None:
    """It, or its answer: nothing but the packet itself can ask. Before the first answer no round trip is known."""
    pair = wired_pair(**RUDI | {"retransmission_timeout_ps": MS}, version=6)
    if not is_first:
        all_arrives(pair, Wire([]), [MTU])
    frames = 0

    def wire(sender: str, frame: bytes) -> list[bytes]:
        nonlocal frames
        frames += sender == lost
        return [] if sender == lost and frames <= times else [frame]

    source, target = post(pair, [MTU])
    pair.run(wire, done(pair, 1), limit_steps=900 if is_first else 60)
    assert np.array_equal(source, target)
    assert frames == times + 1
    stats = pair.a.queue_pair.stats()
    assert stats["timeouts"] == 0
    assert stats["retransmitted_packets"] == times


def test_repetitions_do_not_keep_a_silent_peer_alive() -> None:
    pair = wired_pair(**RUDI | {"retransmission_timeout_ps": 200 * US, "retry_limit": 2}, version=6)
    all_arrives(pair, Wire([]), [MTU])
    pair.a.queue_pair.post_write(None, 0, MTU, 0, 1, work_id=7)
    pair.run(
        lambda _sender, _frame: [], lambda: pair.a.queue_pair.stats()["error"] != "success", limit_steps=7 * 200 + 40
    )
    stats = pair.a.queue_pair.stats()
    assert stats["error"] == "retry_exceeded"
    assert stats["timeouts"] == 3
    assert stats["retransmitted_packets"] > 3


def test_a_silent_peer_ends_the_queue_pair() -> None:
    pair = wired_pair(**RUDI, version=6, retry_limit=2)
    pair.a.queue_pair.post_write(None, 0, MTU, 0, 1, work_id=7)
    pair.run(lambda _sender, _frame: [], lambda: pair.a.queue_pair.stats()["error"] != "success")
    assert [(each["work_id"], each["status"]) for each in pair.a.completions.poll()] == [(7, "retry_exceeded")]


def test_memory_that_is_not_the_peer_s_is_refused() -> None:
    """By a response; the initiator fails, the target has nothing that could."""
    pair = wired_pair(**RUDI, version=6)
    memory = np.zeros(MTU, np.uint8)
    rkey = pair.b.register(memory).rkey
    pair.a.queue_pair.post_write(None, 0, MTU + 1, 0, rkey, work_id=1)
    pair.a.queue_pair.post_write(None, 0, MTU, 0, rkey, work_id=2)
    pair.run(ideal_wire, lambda: pair.a.queue_pair.stats()["outstanding_requests"] == 0)
    assert [each["status"] for each in pair.a.completions.poll()] == ["remote_access_error", "flushed"]
    assert pair.b.queue_pair.stats()["responder_error"] == "success"
    source = random_bytes(MTU)
    peers = pair.a.register(np.zeros(MTU, np.uint8)).rkey
    pair.b.queue_pair.post_write(pair.b.register(source), 0, MTU, 0, peers, work_id=3)
    pair.run(ideal_wire, lambda: pair.b.queue_pair.stats()["outstanding_requests"] == 0)
    assert [each["status"] for each in pair.b.completions.poll()] == ["success"]


def test_answers_to_packets_of_long_ago_answer_no_others() -> None:
    """Identifiers come in blocks, which are not given out again while others are left."""
    pair = wired_pair(**RUDI, version=6, window_bytes=1 << 20)
    kept: list[bytes] = []
    identifiers: list[int] = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        if sender == "b":
            kept.append(frame)
        else:
            identifiers.append(headers_of(frame)[0]["pkt_id"])
        return [frame]

    source, target = post(pair, [(3 * BLOCK + 100) * MTU])
    pair.run(wire, done(pair, 1))
    assert np.array_equal(source, target)
    assert len(set(identifiers)) == len(identifiers) == 3 * BLOCK + 100
    stale = pair.a.queue_pair.stats()["stale_acknowledgements"]
    # While these packets are lost, the answers to others come again.
    pair.a.queue_pair.post_write(None, 0, 4 * MTU, 0, pair.b.register(np.zeros(4 * MTU, np.uint8)).rkey, work_id=1)
    pair.step(lambda _sender, _frame: [])
    for frame in kept[:100] + kept[-100:]:
        pair.engine.inject(pair.a.nic, 0, frame)
    pair.step(lambda _sender, _frame: [])
    stats = pair.a.queue_pair.stats()
    assert stats["outstanding_requests"] == 1
    # The first ones are of a block that nobody has any more; the last ones' block is still in use.
    assert stats["stale_acknowledgements"] == stale + 100
    pair.run(ideal_wire, done(pair, 1))


def test_answers_find_their_queue_pair_among_many() -> None:
    """And with NSCC they share the link of their host, and fill it."""
    engine = Engine(seed=1)
    links = [Link(engine, name=name, delay_ps=US) for name in ("a-b", "b-a")]
    nics, completions = [], CompletionQueue(engine)
    for index, link in enumerate(links, 1):
        nics.append(Nic(engine, f"h{index}"))
        port = TransmitPort(engine, link, rate_bps=10**11)
        nics[-1].add_port(port, mac=f"02:00:00:00:00:0{index}", addresses=[f"10.0.0.{index}"])
    links[0].connect(nics[1], 0)
    links[1].connect(nics[0], 0)
    made: list[list[RudiQueuePair]] = [[], []]
    for number, side in product(range(8), (0, 1)):
        control = make_congestion_control(
            "nscc", line_rate_bps=10**11, base_round_trip_ps=3 * US, frame_bytes=4200, parameters={}
        )
        made[side].append(
            RudiQueuePair(
                nics[side],
                0,
                completions,
                queue_pair=0x100 + number,
                remote_queue_pair=0x100 + number,
                destination_mac=f"02:00:00:00:00:0{2 - side}",
                destination_ip=f"10.0.0.{2 - side}",
                congestion_control=control,
                retransmission_timeout_ps=500 * US,
                path_mtu_bytes=4096,
                uet_options={"service": "rudi"},
            )
        )
    sources = [random_bytes(100_000, number) for number in range(8)]
    targets = [np.zeros_like(source) for source in sources]
    for source, target, queue_pair in zip(sources, targets, made[0], strict=True):
        rkey = nics[1].register_memory(target).rkey
        queue_pair.post_write(nics[0].register_memory(source), 0, len(source), 0, rkey)
    engine.run_for(90 * US)  # of which 64 are the payload's
    assert all(np.array_equal(source, target) for source, target in zip(sources, targets, strict=True))
    assert all(each.stats()["outstanding_requests"] == each.stats()["retransmitted_packets"] == 0 for each in made[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"uet_options": {"service": "rudi", "receiver_credits": True}},
            "receiver_credits need service rud or rod",
        ),
        ({"retransmission": "go-back-n"}, "go-back-n does not go with services rud, rudi and uud"),
        ({"telemetry": True}, "telemetry .INT. does not go with UET"),
    ],
)
def test_what_does_not_go_with_rudi_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wired_pair(**{**RUDI, **options})


def test_what_must_not_happen_twice_is_refused() -> None:
    pair = wired_pair(**RUDI)
    with pytest.raises(ValueError, match="may arrive twice, and an immediate must not"):
        pair.a.queue_pair.post_write(None, 0, 1, 0, 1, immediate=1)
    assert pair.a.queue_pair.stats()["outstanding_requests"] == 0


def test_a_queue_pair_is_of_the_service_that_it_is_made_for() -> None:
    pair = wired_pair(**RUDI)
    place: dict[str, Any] = {
        "remote_queue_pair": 0x300,
        "destination_mac": pair.b.mac,
        "destination_ip": pair.b.ip(4),
        "congestion_control": fixed_window(),
        "retransmission_timeout_ps": 50 * US,
    }
    with pytest.raises(ValueError, match="valid for a queue pair of RUDI: rudi"):
        RudiQueuePair(pair.a.nic, 0, pair.a.completions, **place)
    with pytest.raises(ValueError, match="valid for a queue pair with PDCs: rud, rod"):
        UetQueuePair(pair.a.nic, 0, pair.a.completions, uet_options={"service": "rudi"}, **place)
    with pytest.raises(ValueError, match="valid for a queue pair of UUD: uud"):
        UudQueuePair(pair.a.nic, 0, pair.a.completions, **place)


def test_malformed_packets_are_dropped_and_counted() -> None:
    """Whatever byte of a frame is wrong: UDP's checksum or the headers say so."""
    pair = wired_pair(**RUDI, version=6)
    frames = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        frames.append((sender, frame))
        return [frame]

    post(pair, [MTU + 1])
    pair.run(wire, done(pair, 1))
    assert {type_of(frame) for _, frame in frames} == {REQUEST, RESPONSE}
    received = pair.b.queue_pair.stats()["data_packets_received"]
    random = np.random.default_rng(5)
    for _ in range(300):
        sender, frame = frames[random.integers(len(frames))]
        bad = bytearray(frame)
        bad[random.integers(UDP_AT, len(bad))] ^= 1 << random.integers(8)
        cut = bytes(bad[: random.integers(UDP_AT, len(bad) + 1)])
        for damaged in (bytes(bad), cut, with_dscp(cut, DSCP_TRIMMED)):
            pair.engine.inject((pair.b if sender == "a" else pair.a).nic, 0, damaged)
        pair.step(ideal_wire)
    assert pair.b.queue_pair.stats()["data_packets_received"] == received
    assert pair.a.queue_pair.stats()["error"] == pair.b.queue_pair.stats()["error"] == "success"
