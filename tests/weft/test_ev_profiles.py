"""EV profiles and EV events of hosts, as `mrc_ctl.h` divides them: in Python and by `weft controller ev`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.weft.test_ev_control import KEPT, commanded, hashing, run
from tests.weft.test_ev_routes import LEAF_SPINE, US, made
from weft import Fabric, topologies
from weft.clocks.virtual.lab import VirtualLab
from weft.errors import BadInputError, WeftError
from weft.run.collectives import CollectiveRequest
from weft.scenario import TransportSection
from weft.traffic.ev_profiles import EvOfPlane, EvProfileAttributes, EvProfiles
from weft.traffic.patterns import Flow

ONLINE: dict[str, Any] = {"state": "online", "ev_min_active": 0, "ev_event_mask": ()}


def made_online(fabric: Fabric, host: str, profile_id: int, **attributes: Any) -> None:
    fabric.modify_ev_profile(host, profile_id, state="offline", **attributes)
    fabric.modify_ev_profile(host, profile_id, **ONLINE)
    fabric.assign_ev_profile(host, profile_id)


FLOWS = (Flow(0, 3, 4_000_000), Flow(0, 2, 1000, start_ps=US * 1_000_000))
"""One that has not ended after 20 us, and one that has not started."""


@contextmanager
def flows_under_way(fabric: Fabric, flows: Sequence[Flow] = FLOWS) -> Iterator[None]:
    """Begin flows, and let 20 us pass; end them."""
    lab, hosts = fabric.lab, fabric.hosts
    assert isinstance(lab, VirtualLab)
    number = hosts.prepare_workload(flows, telemetry=False)
    hosts.start(number)
    lab._loop.run_here(lab._loop.sleep_ps(20 * US))
    try:
        yield
    finally:
        hosts.release(number)


def profile_of(fabric: Fabric, host: str, profile_id: int) -> dict[str, Any]:
    (found,) = [each for each in fabric.ev_profiles(host) if each["profile_id"] == profile_id]
    return dict(found)


def test_the_scenario_s_profile_is_online_and_assigned() -> None:
    transport = TransportSection(protocol="mrc", ev_count=64, ev_backups=8, ev_min_active=5, connections="kept")
    with Fabric(LEAF_SPINE, clock="virtual", int_telemetry=False, transport=transport) as fabric:
        run(fabric)
        (profile,) = fabric.ev_profiles("h0")
    assert profile == {
        "profile_id": 0,
        "state": "online",
        "ev_mode": "auto",
        "ev_count": 64,
        "ev_backups": 8,
        "ev_min_active": 5,
        "ev_event_mask": (),
        "evs": (),
        "assigned": True,
        "queue_pairs": 2,  # to both neighbours in the ring
    }


def test_queue_pairs_made_later_take_the_assigned_profile() -> None:
    with hashing() as fabric:
        run(fabric)
        before = len(fabric.evs("h0"))
        made_online(fabric, "h0", 9, ev_mode="auto", ev_count=20, ev_backups=4)
        run(fabric)  # over the connections that there are
        assert len(fabric.evs("h0")) == before == 2 * 160
        fabric.hosts.disconnect()
        run(fabric)
        assert len(fabric.evs("h0")) == 2 * 24
        assert Counter(each["active"] for each in fabric.evs("h0")) == {True: 40, False: 8}
        assert len(fabric.evs("h1")) == before  # another host
        assert profile_of(fabric, "h0", 9)["queue_pairs"] == 2
        assert profile_of(fabric, "h0", 0)["queue_pairs"] == 0
        fabric.assign_ev_profile("h0", 0)
        with pytest.raises(WeftError, match="EV profile 9 is in use by 2 queue pairs"):
            fabric.modify_ev_profile("h0", 9, state="offline")
        fabric.hosts.disconnect()
        fabric.modify_ev_profile("h0", 9, state="offline")
        fabric.modify_ev_profile("h0", 9, state="init")
        assert [each["profile_id"] for each in fabric.ev_profiles("h0")] == [0]


def test_explicit_evs_are_those_of_the_profile_even_of_flows() -> None:
    topology = topologies.leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=1)
    evs = [(plane, (0xC000 + 16 * plane + each) << 16 | 7) for plane in range(2) for each in range(3)]
    with Fabric(topology, clock="virtual", int_telemetry=False, transport=KEPT, ip_version=6) as fabric:
        made_online(fabric, "h0", 1, ev_mode="explicit", ev_count=4, ev_backups=2, evs=evs)
        fabric.run(CollectiveRequest("allreduce", 100_000, "ring"))
        assert {(each["plane"], each["value"]) for each in fabric.evs("h0")} == set(evs)
        assert Counter(each["active"] for each in fabric.evs("h0")) == {True: 4, False: 2}
        assert all(each["turns"] > 0 for each in fabric.evs("h0") if each["active"])
        fabric.permutation(1_000_000)


@pytest.mark.parametrize("kind", ["srv6", "structured_ev"])
def test_explicit_evs_choose_among_named_paths(kind: str) -> None:
    with made(LEAF_SPINE, kind, transport=KEPT) as fabric:
        run(fabric)
        over = [each for each in fabric.evs("h0", peer="h3") if "p0s1" in each["nodes"]]
        fabric.hosts.disconnect()
        made_online(fabric, "h0", 1, ev_mode="explicit", ev_count=1, evs=[(0, over[0]["value"])])
        made_online(fabric, "h3", 1, ev_mode="explicit", ev_count=1, evs=[(0, 0xDFFF0000)])
        with pytest.raises(WeftError, match="EV profile 1: EV 0xdfff0000 names no path to"):
            fabric.run(CollectiveRequest("allreduce", 100_000, "ring", ranks=[0, 3]))
        fabric.assign_ev_profile("h3", 0)
        fabric.run(CollectiveRequest("allreduce", 100_000, "ring", ranks=[0, 3]))
        (row,) = fabric.evs("h0")
        assert row["nodes"] == over[0]["nodes"]
        assert row["outer_destination"] == over[0]["outer_destination"]
        assert row["turns"] > 0
        with flows_under_way(fabric, [Flow(0, 3, 4_000_000)]):
            assert {each["nodes"] for each in fabric.evs("h0", peer="h3")} == {over[0]["nodes"]}


def test_events_tell_when_paths_fail_and_come_back() -> None:
    with made(LEAF_SPINE, "structured_ev", transport=KEPT) as fabric:
        for host in ("h0", "h1"):
            fabric.modify_ev_profile(host, 0, ev_event_mask=("assumed_bad", "good"))
        run(fabric)
        assert fabric.ev_events("h0") == fabric.ev_events("h1") == []
        dead = {each["value"] for each in fabric.evs("h1", peer="h2") if "p0s1" in each["nodes"]}
        fabric.schedule_link("p0l0", "p0s1", "down")
        fabric.schedule_link("p0l0", "p0s1", "up", 200 * US)
        run(fabric)
        for _ in range(20):
            run(fabric)  # EVs are probed while there is data to send
        events = fabric.ev_events("h1")
        assert [each["state"] for each in events[:2]] == ["assumed_bad", "good"]
        assert {(each["value"], each["peer_host"], each["plane"]) for each in events} == {(*dead, "h2", 0)}
        assert fabric.ev_events("h1") == []
        # The mask is the profile's, so that queue pairs made later have it, too.
        fabric.modify_ev_profile("h1", 0, ev_event_mask=())
        fabric.deny_evs("h1", peer="h2", switch="p0s1")
        fabric.allow_evs("h1", peer="h2", switch="p0s1")
        assert fabric.ev_events("h1") == []
        with pytest.raises(BadInputError, match=r"most is 0 \(valid: 1 to 4096"):
            fabric.ev_events("h1", 0)


@pytest.mark.parametrize("kind", ["srv6", None])
def test_evs_of_flows_are_operated_like_those_of_connections(kind: str | None) -> None:
    with made(LEAF_SPINE, kind) if kind else hashing() as fabric:
        with flows_under_way(fabric):
            evs = fabric.evs("h0")
            assert {each["peer_host"] for each in evs} == {"h3"}
            assert {bool(each["nodes"]) for each in evs} == {kind is not None}
            assert sum(each["turns"] for each in evs) > 0
            assert len(fabric.evs("h3", peer="h0")) == len(evs)
            probed = fabric.probe_evs("h0", value=evs[0]["value"])
            assert [each["round_trip_ps"] is not None for each in probed] == [True]
            assert fabric.deny_evs("h0", value=evs[0]["value"]) == 1
            (denied,) = fabric.evs("h0", value=evs[0]["value"])
            assert denied["state"] == "denied"
            with pytest.raises(WeftError, match="would have no EV left"):
                fabric.deny_evs("h0")
            fabric.allow_evs("h0", value=evs[0]["value"])
            assert {each["state"] for each in fabric.evs("h0")} == {"good"}
            assert profile_of(fabric, "h0", 0)["queue_pairs"] == 1
            fabric.modify_ev_profile("h0", 0, ev_event_mask=("good",))
            fabric.deny_evs("h0", value=evs[0]["value"])
            fabric.allow_evs("h0", value=evs[0]["value"])
            (event,) = fabric.ev_events("h0")
            assert (event["value"], event["peer_host"], event["state"]) == (evs[0]["value"], "h3", "good")
        assert fabric.evs("h0") == []


def test_a_denial_holds_for_later_flows_of_an_explicit_profile() -> None:
    """Where switches hash EVs, too: flows have the very values that are denied."""
    topology = topologies.leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=2, delay_ps=US)
    evs = [(plane, (0xC000 + 16 * plane + each) << 16) for plane in range(2) for each in range(3)]
    flows = [Flow(0, 3, 4_000_000), Flow(0, 3, 4_000_000, start_ps=30 * US)]
    with Fabric(topology, clock="virtual", int_telemetry=False, transport=KEPT) as fabric:
        lab = fabric.lab
        assert isinstance(lab, VirtualLab)
        made_online(fabric, "h0", 1, ev_mode="explicit", ev_count=4, ev_backups=2, evs=evs)
        with flows_under_way(fabric, flows):
            assert len(fabric.evs("h0")) == len(evs)
            assert fabric.deny_evs("h0", value=evs[0][1]) == 1
            assert fabric.deny_evs("h0", plane=1) == 3
            lab._loop.run_here(lab._loop.sleep_ps(20 * US))
            rows = fabric.evs("h0")
            (first, later) = sorted({each["queue_pair"] for each in rows if each["queue_pair"] is not None})
            denied = {evs[0], *evs[3:]}
            for number in (first, later):
                own = [each for each in rows if each["queue_pair"] == number]
                assert {(each["plane"], each["value"]) for each in own if each["state"] == "denied"} == denied
            assert all(each["turns"] == 0 for each in own if each["state"] == "denied")
            assert any(each["turns"] > 0 for each in own)
            fabric.allow_evs("h0", plane=1)
            states = Counter((each["value"], each["state"]) for each in fabric.evs("h0"))
            assert states[(evs[0][1], "denied")] == 2
            assert all(states[(value, "good")] == 2 for _, value in evs[1:])
            fabric.deny_evs("h0", plane=0)
        # A workload that starts later follows, too.
        with flows_under_way(fabric, flows[:1]):
            denied_later = {each["value"] for each in fabric.evs("h0") if each["state"] == "denied"}
            assert denied_later == {value for plane, value in evs if plane == 0}


def test_a_profile_stays_online_while_a_workload_may_make_queue_pairs_with_it() -> None:
    with hashing() as fabric:
        made_online(fabric, "h0", 2, ev_mode="auto", ev_count=20)
        with flows_under_way(fabric, FLOWS[1:]):  # none has started
            assert fabric.evs("h0") == []
            assert profile_of(fabric, "h0", 2)["queue_pairs"] == 1
            fabric.assign_ev_profile("h0", 0)
            with pytest.raises(WeftError, match="EV profile 2 is in use"):
                fabric.modify_ev_profile("h0", 2, state="offline")
        assert profile_of(fabric, "h0", 2)["queue_pairs"] == 0
        fabric.modify_ev_profile("h0", 2, state="offline")


def test_long_lists_come_in_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.clocks.real.operations_server.MOST_EV_ROWS", 50)
    with hashing() as fabric, commanded(fabric, tmp_path) as ev:
        run(fabric)
        assert json.loads(ev("list", "h0", "--json").output) == json.loads(json.dumps(fabric.evs("h0")))
        refused = ev("probe", "h0")
        assert refused.exit_code == 3
        assert "320 EVs to probe (valid: at most 50: choose a peer or a plane)" in refused.output
        assert len(json.loads(ev("probe", "h0", "--value", hex(fabric.evs("h0")[0]["value"]), "--json").output)) == 1


def test_answers_are_waited_for_by_the_lab_s_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(
        "weft.controller.cli.ev.request", lambda _lab, patience_s, **_: waited.append(patience_s) or {"events": []}
    )
    with hashing() as fabric, commanded(fabric, tmp_path) as ev:
        for dilation in (None, 0.5, 100.0):
            document = json.loads(ev.state.read_text())
            ev.state.write_text(json.dumps(document if dilation is None else document | {"dilation": dilation}))
            assert ev("events", "h0").exit_code == 0
    assert waited == [60.0, 60.0, 6000.0]


def attributes(**given: Any) -> EvProfileAttributes:
    return EvProfileAttributes(**given)


def offline(**given: Any) -> EvProfiles:
    profiles = EvProfiles(128, 32, 0, 2)
    profiles.modify(3, attributes(state="offline", **{"ev_mode": "auto", "ev_count": 8, **given}), 0)
    return profiles


@pytest.mark.parametrize(
    ("profile_id", "given", "message"),
    [
        (3, {"state": "online"}, "EV profile 3 lacks ev_min_active"),
        (3, {"state": "online", "ev_min_active": 0}, "EV profile 3 lacks ev_event_mask"),
        (3, {"ev_min_active": 9}, r"ev_min_active 9 \(valid: 0 to 8"),
        (3, {"ev_count": 1}, r"ev_count 1 \(valid: 2 to 4096, one for each plane"),
        (3, {"evs": (EvOfPlane(0, 1 << 16),)}, r"valid: ev_mode explicit"),
        (4, {"ev_count": 8}, r"EV profile 4 is init \(valid: state offline, with ev_mode and ev_count"),
        (4, {"state": "online"}, r"EV profile 4 is init and cannot become online \(valid: offline"),
        (4, {"state": "offline", "ev_mode": "auto"}, "EV profile 4 lacks ev_count"),
        (0, {"ev_count": 8}, r"EV profile 0 is the scenario's \(valid: a change of ev_event_mask alone"),
        (-1, {"state": "offline"}, "EV profile -1"),
    ],
)
def test_what_a_profile_cannot_be_is_refused(profile_id: int, given: dict[str, Any], message: str) -> None:
    profiles = offline()
    before = profiles.all(lambda _: 0)
    with pytest.raises(ValueError, match=message):
        profiles.modify(profile_id, attributes(**given), 0)
    assert profiles.all(lambda _: 0) == before


def test_a_profile_that_goes_back_to_init_is_forgotten() -> None:
    profiles = offline()
    profiles.modify(3, attributes(state="init", ev_count=4), 0)
    assert [each.profile_id for each in profiles.all(lambda _: 0)] == [0]


@pytest.mark.parametrize(
    ("evs", "message"),
    [
        ((), r"0, 0 EVs of its planes \(valid: ev_count and ev_backups, 2, divided equally"),
        (((0, 1 << 16), (0, 2 << 16)), "2, 0 EVs of its planes"),
        (((0, 1 << 16), (2, 2 << 16)), r"an EV of plane 2 \(valid: 0 to 1"),
        (((0, 1 << 16), (1, 1 << 16 | 5)), r"EV 0x00010005 \(valid: EVs with different UDP source ports"),
        (((0, 0xFFFF), (1, 1 << 16)), r"EV 0xffff \(valid: 0x10000 to 0xffffffff"),
        (((0, 1 << 32), (1, 1 << 16)), r"EV 0x100000000 \(valid: 0x10000 to 0xffffffff"),
    ],
)
def test_explicit_evs_that_cannot_be_are_refused(evs: tuple[tuple[int, int], ...], message: str) -> None:
    profiles = offline(ev_mode="explicit", ev_count=2)
    with pytest.raises(ValueError, match=message):
        profiles.modify(
            3,
            attributes(state="online", ev_min_active=0, ev_event_mask=(), evs=tuple(EvOfPlane(*each) for each in evs)),
            0,
        )


def test_an_explicit_profile_that_becomes_auto_forgets_its_evs() -> None:
    evs = (EvOfPlane(0, 1 << 16), EvOfPlane(1, 2 << 16))
    profiles = offline(ev_mode="explicit", ev_count=2, evs=evs)
    with pytest.raises(ValueError, match="valid: ev_mode explicit"):
        profiles.modify(3, attributes(ev_mode="auto", evs=evs), 0)
    assert profiles.modify(3, attributes(ev_mode="auto"), 0).evs == ()
    assert profiles.modify(3, attributes(ev_count=4), 0).ev_count == 4
    assert profiles.modify(3, attributes(ev_mode="explicit"), 0).evs == ()


def test_active_and_backup_evs_of_an_explicit_profile_are_each_divided_among_the_planes() -> None:
    """Otherwise queue pairs would leave some out: a plane has its share of the active ones and of the backups."""
    evs = tuple(EvOfPlane(number % 2, number + 1 << 16) for number in range(4))
    profiles = offline(ev_mode="explicit", ev_count=2)
    for count, backups in ((3, 1), (2, 1)):
        with pytest.raises(ValueError, match=rf"ev_count {count}, ev_backups {backups} \(valid: multiples of 2"):
            profiles.modify(3, attributes(ev_count=count, ev_backups=backups, evs=evs), 0)
    for count, backups in ((2, 2), (4, 0)):
        profiles.modify(3, attributes(ev_count=count, ev_backups=backups, evs=evs), 0)


def test_only_profiles_that_are_online_can_be_assigned_and_not_more_than_there_may_be() -> None:
    profiles = offline()
    for number, state in ((3, "offline"), (4, "init")):
        with pytest.raises(ValueError, match=rf"EV profile {number} is {state} \(valid: 0"):
            profiles.assign(number)
    for number in range(4, 66):
        profiles.modify(number, attributes(state="offline", ev_mode="auto", ev_count=8), 0)
    with pytest.raises(ValueError, match=r"65 EV profiles of a host \(valid: at most 64"):
        profiles.modify(66, attributes(state="offline", ev_mode="auto", ev_count=8), 0)


def test_attributes_of_another_type_are_refused() -> None:
    with hashing() as fabric:
        for wrong in ({"ev_count": "8"}, {"state": "up"}, {"ev_event_mask": ["skip"]}, {"evs": [[0]]}, {"count": 8}):
            with pytest.raises(BadInputError):
                fabric.modify_ev_profile("h0", 1, **wrong)  # type: ignore[arg-type]
        wrong_id: Any
        for wrong_id in ("1", 1.0, True, None):
            with pytest.raises(BadInputError, match=r"profile_id is .+ \(valid: a whole number"):
                fabric.modify_ev_profile("h0", wrong_id, state="offline", ev_mode="auto", ev_count=8)
            with pytest.raises(BadInputError, match=r"profile_id is .+ \(valid: a whole number"):
                fabric.assign_ev_profile("h0", wrong_id)
            with pytest.raises(BadInputError, match=r"most is .+ \(valid: 1 to 4096"):
                fabric.ev_events("h0", wrong_id)
        assert [each["profile_id"] for each in fabric.ev_profiles("h0")] == [0]
        with pytest.raises(BadInputError, match="h9"):
            fabric.ev_profiles("h9")


def test_the_command_shows_and_changes_profiles(tmp_path: Path) -> None:
    with hashing() as fabric, commanded(fabric, tmp_path) as ev:
        for arguments in (
            ("profile", "set", "h0", "5", "--state", "offline", "--mode", "explicit", "--count", "2"),
            ("profile", "set", "h0", "5", "--ev", "0:0xc0010000", "--ev", "0:0xc0020000"),
            ("profile", "set", "h0", "5", "--state", "online", "--min-active", "1", "--event", "assumed_bad"),
            ("profile", "assign", "h0", "5"),
        ):
            answer = ev(*arguments)
            assert answer.exit_code == 0, answer.output
        listed = json.loads(ev("profile", "list", "h0", "--json").output)
        assert listed == json.loads(json.dumps(fabric.ev_profiles("h0")))
        assert [(each["profile_id"], each["assigned"]) for each in listed] == [(0, False), (5, True)]
        shown = json.loads(ev("profile", "show", "h0", "5", "--json").output)
        assert shown == [{"plane": 0, "value": 0xC0010000}, {"plane": 0, "value": 0xC0020000}]
        assert "explicit" in ev("profile", "list", "h0").output
        run(fabric)
        assert {each["value"] for each in fabric.evs("h0")} == {0xC0010000, 0xC0020000}
        assert json.loads(ev("events", "h0", "--json").output) == []
        for wrong, code in (
            (("profile", "set", "h0", "5"), 2),
            (("profile", "set", "h0", "5", "--ev", "0"), 2),
            (("profile", "set", "h0", "5", "--event", "none", "--event", "good"), 2),
            (("profile", "set", "h0", "5", "--count", "8"), 1),
            (("profile", "show", "h0", "6"), 3),
            (("profile", "assign", "h0", "6"), 1),
            (("events", "h9"), 3),
        ):
            assert ev(*wrong).exit_code == code, wrong


def test_hosts_without_evs_keep_none() -> None:
    with Fabric(LEAF_SPINE, clock="virtual") as fabric:
        lab = fabric.lab
        assert isinstance(lab, VirtualLab)
        run(fabric)
        for endpoint in lab._endpoints:
            assert endpoint.host.evs is None
            assert endpoint.host.ev_profile is None
        for ask in (fabric.ev_profiles, fabric.ev_events):
            with pytest.raises(BadInputError, match=r"rc has no EVs \(valid: mrc\)"):
                ask("h0")
