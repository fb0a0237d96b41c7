"""What a controller and an application set at queue pairs of MRC: events, active EVs, immediates under way, probes."""

import itertools
from typing import Any

import numpy as np
import pytest

from tests.transport.rdma_pair import MS, WiredPair, ideal_wire, random_bytes, wired_pair
from tests.transport.test_mrc_queue_pair import MRC, MTU, is_write, opcode_of
from tests.transport.test_mrc_reverse_paths import endpoint_stats, port_of
from tests.transport.test_selective_repeat import done, post
from weft.engine import _core, parse_packet

GOOD, ASSUMED_BAD = 1, 2


def with_options(**options: Any) -> dict[str, Any]:
    return MRC | {"mrc_options": MRC["mrc_options"] | options}


def lose_over(pair: WiredPair, ports: set[int]) -> None:
    """Send data, all of which is lost over these UDP source ports, but for probes."""
    source, target = post(pair, [8000 * MTU])
    pair.run(lambda _, frame: [] if is_write(frame) and port_of(frame) in ports else [frame], done(pair, 1))
    assert np.array_equal(source, target)


@pytest.mark.parametrize(
    ("mask", "expected"), [(0, set()), (GOOD, {"good"}), (ASSUMED_BAD, {"assumed_bad"}), (3, {"good", "assumed_bad"})]
)
def test_changes_to_the_states_of_the_mask_are_events(mask: int, expected: set[str]) -> None:
    pair = wired_pair(**with_options(ev_event_mask=mask, ev_profile_id=7), version=6)
    value = pair.a.queue_pair.evs()[2]["value"]
    lose_over(pair, {value >> 16})
    events = _core.take_mrc_ev_events(pair.a.nic)
    assert {each["state"] for each in events} == expected
    assert {each["value"] for each in events} <= {value}
    assert [each["time_ps"] for each in events] == sorted(each["time_ps"] for each in events)
    for each in events:
        assert (each["profile_id"], each["queue_pair"], each["peer"], each["port"]) == (7, 0x101, "fd00::2", 0)
    counted = pair.a.queue_pair.mrc_stats()
    states = [each["state"] for each in events]
    if mask & ASSUMED_BAD:
        assert states.count("assumed_bad") == counted["evs_to_assumed_bad"] > 0
    if mask & GOOD:
        assert states.count("good") == counted["evs_to_good"] > 0
    assert _core.take_mrc_ev_events(pair.a.nic) == []


def test_the_mask_can_change_at_any_time() -> None:
    pair = wired_pair(**MRC, version=6)
    queue_pair = pair.a.queue_pair
    for mask, expected in ((0, 0), (GOOD, 1), (ASSUMED_BAD, 0)):
        queue_pair.set_ev_event_mask(mask)
        queue_pair.deny_ev(1)
        queue_pair.allow_ev(1)
        assert len(_core.take_mrc_ev_events(pair.a.nic)) == expected


def test_events_that_nobody_takes_are_dropped_and_counted() -> None:
    pair = wired_pair(**with_options(ev_event_mask=GOOD), version=6)

    def change(times: int) -> None:
        for _ in range(times):
            pair.a.queue_pair.deny_ev(0)
            pair.a.queue_pair.allow_ev(0)

    change(4096 + 10)
    assert endpoint_stats(pair.a)["ev_events_dropped"] == 10
    assert len(_core.take_mrc_ev_events(pair.a.nic, 1000)) == 1000
    change(1)
    rest = _core.take_mrc_ev_events(pair.a.nic)
    assert [each["drop_count"] for each in rest] == [0] * 3096 + [10]
    assert endpoint_stats(pair.a)["ev_events_dropped"] == 10


@pytest.mark.parametrize(("active", "block"), [(6, 4), (16, 4), (64, 16)])
def test_no_ev_that_names_a_path_waits_for_more_than_a_rotation_and_a_block(active: int, block: int) -> None:
    """Nor is its next turn much sooner; and after some rotations each has followed many others."""
    routes = _core.EvRoutes(encapsulates=False)
    for peer in ("fd00::1", "fd00::2"):
        routes.add(peer, [(0xC0000000 + (number << 16), "") for number in range(active)])
    patient = {"retransmission_timeout_ps": MS, "reordering_window_ps": MS}
    pair = wired_pair(**(with_options(ev_count=active, ev_backups=0) | patient), version=6, routes=routes)
    post(pair, [150 * active * MTU])
    order: list[int] = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        if sender == "a":  # answers to the peer's probes take turns, too
            order.append(port_of(frame))
        return [frame]

    pair.run(wire, done(pair, 1))
    assert pair.a.queue_pair.mrc_stats()["evs_to_assumed_bad"] == 0
    last: dict[int, int] = {}
    gaps = []
    for turn, port in enumerate(order):
        if port in last:
            gaps.append(turn - last[port])
        last[port] = turn
    # Such an answer may leave before a packet with an earlier turn, or after one with a later turn.
    assert active - block - 2 < min(gaps) < max(gaps) < active + block + 2
    followers = {after for before, after in itertools.pairwise(order) if before == order[0]}
    assert len(followers) > active / 2


@pytest.mark.parametrize("least", [0, 10])
def test_so_many_evs_stay_active_even_if_all_paths_lose_packets(least: int) -> None:
    pair = wired_pair(**with_options(ev_count=16, ev_backups=0, ev_min_active=least), version=6)
    post(pair, [400 * MTU])
    seen: dict[bytes, int] = {}

    def lose_first(_: str, frame: bytes) -> list[bytes]:
        """Lose the first packet over each EV."""
        if not is_write(frame) or seen.setdefault(frame[54:56], len(seen)) < 0:
            return [frame]
        seen[frame[54:56]] = -1
        return []

    fewest = 16
    for _ in range(300):
        pair.step(lose_first)
        fewest = min(fewest, sum(each["active"] for each in pair.a.queue_pair.evs()))
    assert fewest == least if least else fewest < 10


def immediates_under_way(pair: WiredPair, messages: int, packets: int) -> int:
    """Send WRITEs with immediate; return the most of which a packet was sent and whose end was not acknowledged."""
    source, target = post(pair, [packets * MTU] * messages)
    begun: set[int] = set()
    most = completed = 0

    def wire(sender: str, frame: bytes) -> list[bytes]:
        if sender == "a" and is_write(frame):
            begun.add(parse_packet(frame)[0]["mrc"]["meth"]["msn"])
        return [frame]

    while completed < messages:
        pair.step(wire)
        completed += sum(each["status"] == "success" for each in pair.a.completions.poll())
        most = max(most, len(begun) - completed)
        assert pair.engine.now_ps < MS
    assert np.array_equal(source, target)
    return most


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_immediates_are_under_way_than_the_limit(limit: int) -> None:
    limited = wired_pair(**with_options(max_wimm=limit, max_wimm_dest=limit), version=6)
    assert immediates_under_way(limited, 12, 4) == limit
    assert limited.b.queue_pair.stats()["responder_error"] == "success"
    assert immediates_under_way(wired_pair(**MRC, version=6), 12, 4) > 3


def test_writes_without_immediate_wait_only_behind_one_that_waits() -> None:
    pair = wired_pair(**with_options(max_wimm=1, max_wimm_dest=1), version=6)
    source = random_bytes(4 * MTU, 1)
    target = np.zeros_like(source)
    region, rkey = pair.a.register(source), pair.b.register(target).rkey
    for number, immediate in enumerate([None, 5, None, 6]):
        pair.a.queue_pair.post_write(region, number * MTU, MTU, number * MTU, rkey, immediate=immediate, work_id=number)
    sent: list[int] = []

    def held(sender: str, frame: bytes) -> list[bytes]:
        if sender == "a" and is_write(frame):
            sent.append(parse_packet(frame)[0]["mrc"]["meth"]["msn"])
        return []

    pair.step(held)
    assert sent == [0, 1, 2]
    pair.run(ideal_wire, done(pair, 4))
    assert np.array_equal(source, target)


def test_what_is_posted_after_a_failure_is_flushed_whatever_the_limit() -> None:
    """It does not wait for acknowledgements of immediates, which nobody sends any more."""
    pair = wired_pair(**with_options(max_wimm=1, max_wimm_dest=1), version=6)
    source = random_bytes(MTU, 1)
    region, rkey = pair.a.register(source), pair.b.register(np.zeros_like(source)).rkey
    statuses: list[str] = []
    for number in range(40):
        wrong = rkey if number else rkey ^ 1
        pair.a.queue_pair.post_write(region, 0, MTU, 0, wrong, immediate=number, work_id=number)
        pair.step(ideal_wire)
        statuses += [each["status"] for each in pair.a.completions.poll()]
    assert statuses == ["remote_access_error"] + ["flushed"] * 39


def test_a_peer_with_more_immediates_under_way_than_allowed_fails_the_connection() -> None:
    pair = wired_pair(**with_options(max_wimm_dest=2), version=6, sender={"mrc_options": with_options()["mrc_options"]})
    post(pair, [MTU] * 4)
    first = True

    def wire(_: str, frame: bytes) -> list[bytes]:
        """Lose the first WRITE, so that the others wait at the receiver."""
        nonlocal first
        if is_write(frame) and first:
            first = False
            return []
        return [frame]

    statuses: list[str] = []
    for _ in range(500):
        pair.step(wire)
        statuses += [each["status"] for each in pair.a.completions.poll()]
        if len(statuses) == 4:
            break
    assert statuses[0] == "remote_operation_error"
    assert set(statuses[1:]) == {"flushed"}
    assert pair.b.queue_pair.stats()["responder_error"] != "success"


def test_immediates_are_counted_beyond_sixteen_bits() -> None:
    """The numbers of immediates wrap; 0 is left out."""
    pair = wired_pair(
        **with_options(max_wimm=2, max_wimm_dest=2), version=6, window_bytes=1 << 20, rate_bps=400_000_000_000
    )
    source = random_bytes(1, 1)
    region, rkey = pair.a.register(source), pair.b.register(np.zeros_like(source)).rkey
    count = (1 << 16) + 50
    for number in range(count):
        pair.a.queue_pair.post_write(region, 0, 1, 0, rkey, immediate=number & 0xFFFF, work_id=number)
    finished = 0
    for _ in range(200_000):
        pair.step(ideal_wire)
        finished += sum(each["status"] == "success" for each in pair.a.completions.poll())
        pair.b.completions.poll()
        if finished == count:
            break
    assert finished == count
    assert pair.b.queue_pair.stats()["responder_error"] == "success"


def test_probes_that_nobody_answers_expire_and_are_counted() -> None:
    pair = wired_pair(**MRC, version=6)
    queue_pair = pair.a.queue_pair
    probes: list[bytes] = []

    def keep(sender: str, frame: bytes) -> list[bytes]:
        if sender == "a" and opcode_of(frame) == 0xD8:
            probes.append(frame)
            return []
        return [frame]

    queue_pair.probe_evs(list(range(20)))
    for _ in range(50):
        pair.step(keep)
    assert endpoint_stats(pair.a)["ev_probes_expired"] == 0
    assert len(probes) == 20
    pair.step(keep)
    pair.step(keep)
    assert endpoint_stats(pair.a)["ev_probes_expired"] == 20
    # The answers come too late, and the next probes are not mixed up with the old ones.
    for frame in probes:
        pair.engine.inject(pair.b.nic, 0, frame)
    for _ in range(4):
        pair.step(ideal_wire)
    stats = endpoint_stats(pair.a)
    assert (stats["ev_probes_answered"], stats["ev_probe_responses_refused"]) == (0, 20)
    assert queue_pair.probed_round_trips() == dict.fromkeys(range(20))
    queue_pair.probe_evs([3])
    for _ in range(4):
        pair.step(ideal_wire)
    assert queue_pair.probed_round_trips()[3] is not None
    assert endpoint_stats(pair.a)["ev_probes_expired"] == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ev_min_active": 17}, r"ev_min_active is 17 \(valid: 0 to ev_count, 16"),
        ({"ev_event_mask": 4}, r"ev_event_mask is 4 \(valid: 0 to 3"),
        ({"max_wimm": 0}, r"max_wimm is 0 \(valid: 1 to 16384"),
        ({"max_wimm_dest": 16385}, r"max_wimm_dest is 16385 \(valid: 1 to 16384"),
    ],
)
def test_settings_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wired_pair(**with_options(**options), version=6)
