"""Connections are made, refused and ended as InfiniBand's communication management says, whatever the network does."""

import errno
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.verbs.cm_ends import GIDS, GUIDS, QPNS, SERVICE, End, Pair, gid_of
from weft.engine import CmConnections, _core

DELAY_PS = 1_000_000
MS_PS = 1_000_000_000
RESPONSE_MS = 1 << 12
"""In which a side is to answer: 4.096 us times 2 to the power of 20, as Linux rounds it."""
KINDS = ("req", "mra", "rej", "rep", "rtu", "dreq", "drep", "sidr_req", "sidr_rep")
REQ_RETRY_MS = 2 * (1 << 8) + RESPONSE_MS


def in_order(_: int) -> list[int]:
    return [DELAY_PS]


def connect(pair: Pair, **options: Any) -> int:
    end = pair.ends["a"]
    end.id = end.connections.connect(
        pair.now_ps, local=GIDS["a"], remote=GIDS["b"], service_id=SERVICE, qpn=QPNS["a"], starting_psn=100, **options
    )
    return end.id


def accepts(end: End, now: int, kind: str, number: int, message: dict[str, Any]) -> None:
    if kind == "req_received":
        end.connections.accept(now, number, qpn=QPNS["b"], starting_psn=200, private_data=b"welcome")
    elif kind == "rep_received":
        end.connections.confirm(now, number)
    elif kind == "dreq_received" and end.state == "dreq_received":
        end.connections.answer_disconnect(now, number)


def test_a_connection_is_made_and_ended() -> None:
    pair = Pair(accepts)
    assert connect(pair, private_data=b"hello", responder_resources=3, initiator_depth=5)
    pair.run(in_order)
    a, b = pair.ends["a"], pair.ends["b"]
    assert (a.state, b.state) == ("established", "established")
    of_a, of_b = a.connections.connection(a.id), b.connections.connection(b.id)
    assert of_a is not None
    assert of_b is not None
    assert (of_a["remote_qpn"], of_b["remote_qpn"]) == (QPNS["b"], QPNS["a"])
    assert (of_a["send_psn"], of_b["send_psn"]) == (200, 100)
    assert (a.events, b.events) == (("rep_received",), ("req_received", "rtu_received"))

    assert a.connections.disconnect(pair.now_ps, a.id) == 0
    assert a.connections.disconnect(pair.now_ps, a.id) == errno.EINVAL
    pair.run(in_order)
    assert a.events[1:] == ("drep_received", "time_wait_over")
    assert b.events[2:] == ("dreq_received", "time_wait_over")
    for end in (a, b):
        end.connections.destroy(pair.now_ps, end.id)
        assert len(end.connections) == 0


def test_a_request_says_what_the_program_offers() -> None:
    connections = CmConnections(GUIDS["a"], seed=7)
    connections.connect(
        0,
        local=GIDS["a"],
        remote=GIDS["b"],
        service_id=SERVICE,
        qpn=0xABCDEF,
        starting_psn=77,
        responder_resources=3,
        initiator_depth=5,
        private_data=b"hello",
    )
    ((port, local, remote, mad),) = connections.take_outgoing()
    assert (port, local, remote) == (1, GIDS["a"], GIDS["b"])
    parsed = _core.parse_cm(mad)
    assert parsed["message"] == "req"
    assert parsed["private_data"] == b"hello".ljust(92, b"\0")
    fields = parsed["fields"]
    expected = {
        "service_id": SERVICE,
        "local_ca_guid": GUIDS["a"],
        "local_qpn": 0xABCDEF,
        "starting_psn": 77,
        "responder_resources": 3,
        "initiator_depth": 5,
        "remote_response_timeout": 20,
        "local_response_timeout": 20,
        "max_cm_retries": 15,
        "pkey": 0xFFFF,
        "primary_hop_limit": 64,
        "primary_subnet_local": 0,
        "primary_local_lid": 0xFFFF,
        "primary_remote_gid_interface": 0x0000FFFF0A000002,
        "primary_local_ack_timeout": 17,
    }
    assert {name: fields[name] for name in expected} == expected


def test_a_service_that_nobody_offers_is_refused() -> None:
    pair = Pair(accepts)
    pair.ends["b"].connections.end_listen(SERVICE)
    reasons: list[int] = []

    def act(end: End, now: int, kind: str, number: int, message: dict[str, Any]) -> None:
        if kind == "rej_received":
            reasons.append(message["fields"]["reason"])

    pair.act = act
    connect(pair)
    pair.run(in_order)
    assert (reasons, pair.ends["a"].state) == ([8], "idle")
    assert len(pair.ends["b"].connections) == 0


def test_a_program_refuses_with_its_own_data() -> None:
    heard: list[tuple[int, bytes]] = []

    def act(end: End, now: int, kind: str, number: int, message: dict[str, Any]) -> None:
        if kind == "req_received":
            assert end.connections.reject(now, number, private_data=b"no") == 0
            end.connections.destroy(now, number)
        elif kind == "rej_received":
            heard.append((message["fields"]["reason"], message["private_data"][:3]))

    pair = Pair(act)
    connect(pair)
    pair.run(in_order)
    assert heard == [(28, b"no\0")]
    assert len(pair.ends["b"].connections) == 0


def test_a_transport_that_is_not_there_is_refused() -> None:
    pair = Pair(accepts)
    connect(pair, transport=3)
    pair.run(in_order)
    assert pair.ends["a"].events == ("rej_received",)


def test_a_request_without_an_answer_is_sent_sixteen_times() -> None:
    pair = Pair(accepts)
    connect(pair)
    times: list[int] = []

    def fate(_: int) -> list[int]:
        times.append(pair.now_ps // MS_PS)
        return []

    pair.run(fate)
    assert times == [REQ_RETRY_MS * number for number in range(16)]
    assert pair.ends["a"].events == ("req_timed_out",)
    assert pair.now_ps == 16 * REQ_RETRY_MS * MS_PS


def test_a_program_that_takes_its_time_is_waited_for() -> None:
    """The second REQ is answered by an MRA, and the next one comes when its time has passed."""
    pair = Pair(lambda *_: None)
    connect(pair)
    pair.run(in_order, until=lambda: pair.ends["a"].state == "mra_req_received")
    assert pair.now_ps // MS_PS == REQ_RETRY_MS
    deadline = pair.ends["a"].connections.next_deadline_ps
    assert deadline is not None
    assert (deadline - pair.now_ps) // MS_PS == (1 << 16) + (1 << 9)
    assert pair.ends["b"].connections.counters["duplicates"]["req"] == 1


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    loss=st.sampled_from((0.0, 0.1, 0.3)),
    twice=st.sampled_from((0.0, 0.3)),
    most_delay_ms=st.sampled_from((0, 10, 3000)),
)
def test_losses_delays_and_copies_change_no_outcome(seed: int, loss: float, twice: float, most_delay_ms: int) -> None:
    """Both ends agree, each event comes once, and nothing is left at the end."""
    random = Random(seed)

    def fate(_: int) -> list[int]:
        copies = 0 if random.random() < loss else 2 if random.random() < twice else 1
        return [DELAY_PS + random.randint(0, most_delay_ms * MS_PS) for _ in range(copies)]

    pair = Pair(accepts)
    a, b = pair.ends["a"], pair.ends["b"]
    connect(pair)
    ids: list[int] = []

    def act(end: End, now: int, kind: str, number: int, message: dict[str, Any]) -> None:
        if kind == "req_received":
            ids.append(number)
        accepts(end, now, kind, number, message)

    pair.act = act
    pair.run(fate, until=lambda: a.state == b.state == "established")
    assert (a.state, b.state) == ("established", "established")
    assert len(ids) == 1
    of_a, of_b = a.connections.connection(a.id), b.connections.connection(b.id)
    assert of_a is not None
    assert of_b is not None
    assert (of_a["remote_qpn"], of_b["remote_qpn"]) == (QPNS["b"], QPNS["a"])

    # A REQ that comes later than time-wait lasts would begin another connection.
    b.connections.end_listen(SERVICE)
    first = random.choice((a, b))
    first.connections.disconnect(pair.now_ps, first.id)
    pair.run(fate)
    for end in (a, b):
        assert len([kind for kind in end.events if kind.startswith(("dreq", "drep"))]) == 1, end.events
        assert end.events.count("time_wait_over") == 1
        end.connections.destroy(pair.now_ps, end.id)
        assert len(end.connections) == 0


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 32), after=st.integers(0, 12))
# The DREQ of a passive side that has died overtakes its REP.
@example(seed=1900000, after=3)
@example(seed=3612399939, after=2)
@example(seed=1672267199, after=1)
@example(seed=532195596, after=1)
def test_a_program_that_dies_leaves_nothing(seed: int, after: int) -> None:
    """Whenever one end destroys its connection, the other one hears of it, and both forget it."""
    random = Random(seed)

    def fate(_: int) -> list[int]:
        return [] if random.random() < 0.2 else [DELAY_PS + random.randint(0, 20 * MS_PS)]

    pair = Pair(accepts)
    connect(pair)
    pair.flush(fate)
    for _ in range(after):
        pair.step(fate)
    dead = random.choice([end for end in pair.ends.values() if end.id])
    # Where somebody still listens, a request that comes again, or late, begins another connection.
    for end in pair.ends.values():
        end.connections.end_listen(SERVICE)
    dead.connections.destroy(pair.now_ps, dead.id)
    assert dead.state == "gone"
    pair.run(fate)
    for end in pair.ends.values():
        assert end is dead or end.id == 0 or end.state in ("idle", "gone")
        if end is not dead and end.id:
            end.connections.destroy(pair.now_ps, end.id)
    pair.run(fate)
    assert [len(end.connections) for end in pair.ends.values()] == [0, 0]


def test_an_end_that_overtakes_the_answer_ends_the_attempt() -> None:
    """The DREQ counts as a refusal, and the REP that comes late is refused."""
    heard: list[tuple[int, int]] = []

    def act(end: End, now: int, kind: str, number: int, message: dict[str, Any]) -> None:
        if kind == "rej_received":
            heard.append((message["fields"]["reason"], message["fields"]["message"]))
        accepts(end, now, kind, number, message)

    pair = Pair(act)
    connect(pair)
    a, b = pair.ends["a"], pair.ends["b"]
    for _, _, _, mad in a.connections.take_outgoing():
        b.receive(0, mad)
    for kind, number, message in b.take_events():
        act(b, 0, kind, number, message)
    b.connections.destroy(0, b.id)
    rep, rej, dreq = (mad for *_, mad in b.connections.take_outgoing())
    assert [_core.parse_cm(mad)["message"] for mad in (rep, rej, dreq)] == ["rep", "rej", "dreq"]
    a.receive(0, dreq)
    a.receive(0, rep)
    (drep, late) = (_core.parse_cm(mad) for *_, mad in a.connections.take_outgoing())
    assert (drep["message"], late["message"], late["fields"]["reason"]) == ("drep", "rej", 6)
    pair.run(in_order)
    assert (heard, a.state) == ([(28, 1)], "idle")


def test_nobody_else_ends_an_attempt() -> None:
    """A DREQ from another host, or about another queue pair, is answered and changes nothing."""
    pair = Pair(accepts)
    connect(pair)
    a = pair.ends["a"]
    a.connections.take_outgoing()
    for remote, qpn in ((gid_of("10.0.0.3"), QPNS["a"]), (GIDS["b"], 0x99)):
        fields = {"local_comm_id": 77, "remote_comm_id": a.id, "remote_qpn": qpn}
        dreq = _core.build_cm({"message": "dreq", "fields": fields})
        a.connections.receive(0, local=GIDS["a"], remote=remote, mad=dreq)
        assert [_core.parse_cm(mad)["message"] for *_, mad in a.connections.take_outgoing()] == ["drep"]
        assert (a.state, a.connections.take_events()) == ("req_sent", [])


def test_a_queue_pair_that_begins_again_ends_its_old_connection() -> None:
    """A host that has lost its memory connects again with the same queue pair: the old connection is stale."""
    pair = Pair(accepts)
    connect(pair)
    pair.run(in_order)
    b = pair.ends["b"]
    pair.ends["a"] = End("a", CmConnections(GUIDS["a"], seed=99))
    connect(pair)
    pair.run(in_order)
    assert pair.ends["a"].events[0] == "rej_received"
    assert b.state in ("idle", "time_wait")
    assert "drep_received" in b.events  # the new life knows nothing of it, and agrees


def test_services_are_resolved() -> None:
    heard: list[dict[str, Any]] = []

    def act(end: End, now: int, kind: str, number: int, message: dict[str, Any]) -> None:
        if kind == "sidr_req_received":
            assert message["private_data"].startswith(b"who?")
            end.connections.answer_service(now, number, qpn=0x33, qkey=0x01234567, private_data=b"me")
            end.connections.destroy(now, number)
        elif kind == "sidr_rep_received":
            heard.append(message)

    pair = Pair(act)
    random = Random(3)
    a = pair.ends["a"]
    a.id = a.connections.resolve_service(0, local=GIDS["a"], remote=GIDS["b"], service_id=SERVICE, private_data=b"who?")
    pair.run(lambda _: [] if random.random() < 0.5 else [DELAY_PS, 2 * DELAY_PS])
    assert [(each["fields"]["qpn"], each["fields"]["status"], each["private_data"][:2]) for each in heard] == [
        (0x33, 0, b"me")
    ]
    # The service hears of a request once, whatever comes again.
    assert pair.ends["b"].events.count("sidr_req_received") == 1
    assert len(pair.ends["b"].connections) == 0


@pytest.mark.parametrize("listens", [True, False])
def test_a_service_that_refuses_says_so(listens: bool) -> None:
    statuses: list[int] = []

    def act(end: End, now: int, kind: str, number: int, message: dict[str, Any]) -> None:
        if kind == "sidr_req_received":
            end.connections.destroy(now, number)
        elif kind == "sidr_rep_received":
            statuses.append(message["fields"]["status"])

    pair = Pair(act)
    if not listens:
        pair.ends["b"].connections.end_listen(SERVICE)
    pair.ends["a"].connections.resolve_service(0, local=GIDS["a"], remote=GIDS["b"], service_id=SERVICE)
    pair.run(in_order)
    assert statuses == [2 if listens else 1]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=256), st.binary(min_size=256, max_size=256)), max_size=5), st.data())
def test_no_message_of_a_peer_does_harm(junk: list[bytes], data: st.DataObject) -> None:
    """Any bytes, and any message with any numbers, at any state."""
    pair = Pair(accepts)
    connect(pair)
    pair.flush(in_order)
    for _ in range(data.draw(st.integers(0, 6))):
        pair.step(in_order)
    ids = [pair.ends["a"].id, pair.ends["b"].id, 0]
    for end in pair.ends.values():
        for each in junk:
            end.receive(pair.now_ps, each)
        for _ in range(3):
            kind = data.draw(st.sampled_from(KINDS))
            fields = {
                "local_comm_id": data.draw(st.sampled_from(ids)),
                "remote_comm_id": data.draw(st.sampled_from(ids)),
                "reason": data.draw(st.integers(0, 40)),
                "message": data.draw(st.integers(0, 3)),
                "local_qpn": data.draw(st.sampled_from((0x11, 0x22, 0))),
                "remote_qpn": data.draw(st.sampled_from((0x11, 0x22, 0))),
                "local_ca_guid": data.draw(st.sampled_from((*GUIDS.values(), 0))),
                "service_id": SERVICE,
                "request_id": data.draw(st.sampled_from(ids)),
            }
            blank = _core.parse_cm(_core.build_cm({"message": kind}))["fields"]
            known = {name: value for name, value in fields.items() if name in blank}
            end.receive(pair.now_ps, _core.build_cm({"message": kind, "fields": known}))
    pair.run(in_order)
    refused = [each for each in junk if _core.cm_parse_error(each) != "none"]
    for end in pair.ends.values():
        assert sum(end.connections.counters["parse_errors"].values()) == len(refused)
