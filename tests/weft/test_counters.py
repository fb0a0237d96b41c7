"""From counters to what a run reports, on small made-up counters of a real topology."""

import pytest

from weft import topologies
from weft.controller.counters import Count, SwitchCounters
from weft.controller.features.identity import switch_id
from weft.controller.planned_paths import PlannedPaths
from weft.results.counters import absorbed_totals, drop_totals, lateness_of
from weft.results.int_paths import longest_int_path
from weft.results.losses import LossResult, loss_results
from weft.results.planes import plane_results

FABRIC = topologies.leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=1)


@pytest.fixture
def counters():
    return {switch.name: SwitchCounters(switch.name) for switch in FABRIC.switches}


def port(depth_bytes=0, tail_dropped=0, lost=0, corrupted=0, uplink=True):
    stats = {
        "transmit": {"max_queue_depth_bytes": depth_bytes, "tail_dropped": {"packets": tail_dropped}},
        "link": {"lost_packets": lost, "corrupted_packets": corrupted},
    }
    if uplink:
        stats["uplink"] = {"tail_dropped": {"packets": 1}}
        stats["uplink_link"] = {"lost_packets": 2, "corrupted_packets": 3}
    return stats


def by_program(packets, port=1, table="", action="", outcome="", source="drops.p4:125"):
    site = {"table": table, "action": action, "outcome": outcome, "source": source}
    return {"reason": "program_ingress", "port": port, "packets": packets, "is_copy": False, **site}


def daemon_stats(ports, drops=None, losses=None):
    return {
        "switches": {
            switch.name: {
                "ports": ports.get(switch.name, {}),
                "drops": drops or {},
                "losses": (losses or {}).get(switch.name, []),
            }
            for switch in FABRIC.switches
        },
        "lateness": {"max_ps": 7, "p99_ps": 5},
    }


def test_planes_are_kept_apart_and_the_largest_queue_has_a_place(counters):
    stats = daemon_stats(
        {
            "p0l0": {"1": port(500, tail_dropped=3), "2": port(900, uplink=False)},
            "p0s1": {"1": port(700, lost=4, corrupted=5, uplink=False)},
            "p1l1": {"1": port()},
        }
    )
    first, second = plane_results(FABRIC, counters, stats)
    assert (first.largest_queue_bytes, first.largest_queue_port) == (900, "p0l0:2")
    assert (first.tail_drops, first.injected_losses, first.corrupted_packets) == (4, 6, 8)
    assert (second.largest_queue_bytes, second.largest_queue_port) == (0, "")
    assert (second.tail_drops, second.injected_losses, second.corrupted_packets) == (1, 2, 3)


def test_a_target_without_such_counters_reports_none(counters):
    for plane in plane_results(FABRIC, counters, None):
        assert (plane.largest_queue_bytes, plane.tail_drops, plane.injected_losses) == (None, None, None)


def test_drops_add_up_by_reason_and_count_once(counters):
    """The program reports its own drops; a queue reports what did not fit into it."""
    own = {
        "tail_dropped": {"packets": 4},
        "headroom_dropped": {"packets": 5},
        "down_dropped": {"packets": 6},
        "trim_dropped": {"packets": 7},
        "storm_dropped": {"packets": 8},
        "storm_arrival_dropped": {"packets": 9},
    }
    one = {
        "transmit": own,
        "link": {"lost_packets": 1, "corrupted_packets": 2, "cut": {"packets": 3}},
    }
    none = {name: {"packets": 0} for name in own}
    stats = daemon_stats(
        {"p0l0": {"1": one}},
        drops={"program_ingress": 9, "no_such_port": 1, "tail_drop": 9, "port_down": 6},
        losses={"p1l1": [by_program(20), by_program(14, source="aggregation.p4:462")]},
    )
    planes = [{"nic": {"dropped": {"bad_icrc": n}}, "transmit": none} for n in (2, 3)]
    endpoint = {"name": "h0", "planes": planes, "ip": None}
    counters["p1l1"] = SwitchCounters(
        "p1l1",
        drops={"ttl_expired": Count(7), "aggregation_duplicate": Count(8), "aggregation_old_round": Count(9)},
        aggregation={"absorb": Count(10), "multicast": Count(11)},
    )
    losses = loss_results(counters, stats, [endpoint])
    assert losses == [LossResult("p1l1", 1, "ttl_expired", 7)]
    assert drop_totals(losses, stats, [endpoint]) == {
        "link corrupted": 2,
        "link cut": 3,
        "link lost": 1,
        "nic bad_icrc": 5,
        "queue down": 6,
        "queue full": 4,
        "queue no_headroom": 5,
        "queue storm": 8,
        "queue storm_arrival": 9,
        "queue trimmed": 7,
        "switch no_such_port": len(FABRIC.switches),
        "ttl_expired": 7,
    }
    assert absorbed_totals(counters) == {"contributions": 10, "repeated_contributions": 17}


def test_what_a_changed_program_drops_besides_has_a_place(counters):
    """Parts of Weft's own program count for themselves; what it answers it has not dropped."""
    added = by_program(3, 2, "Own.deny", "Own.drop", "hit", "mine.p4:9")
    answering = {"p0l0": [by_program(2), by_program(3, 4), added], "p0s0": [by_program(4)]}
    counters["p0l0"] = SwitchCounters("p0l0", drops={"no_route": Count(5)})
    counters["p0s0"] = SwitchCounters("p0s0", drops={"no_route": Count(4), "ttl_expired": Count(6)})
    assert loss_results(counters, daemon_stats({}, losses=answering), []) == [
        LossResult("p0l0", None, "no_route", 5),
        LossResult("p0l0", 2, "program: Own.drop (hit in Own.deny)", 3, "Own.deny", "Own.drop", "hit", "mine.p4:9"),
        LossResult("p0s0", 1, "no_route", 4),
    ]


def test_lateness_is_the_worst_of_all_processes():
    endpoints = [{"lateness": {"max_ps": 100, "p99_ps": 1}}, {"lateness": {"max_ps": 2, "p99_ps": 50}}]
    late = lateness_of(daemon_stats({}), endpoints, 1000, 10.0)
    assert (late.largest_ps, late.percentile_99_ps, late.path_rtt_ps, late.dilation) == (100, 50, 1000, 10.0)
    assert lateness_of(None, endpoints[1:], 1000, 10.0).largest_ps == 2


def paths_of(plane):
    return PlannedPaths.of_kind(FABRIC, "shortest_paths", plane)


def stack(path_id, queues, plane=0, peer=1):
    hops = [{"rate_bps": 10**10, "queue_bytes": queue, "timestamp_ns": 1, "tx_bytes": 128} for queue in queues]
    return {"plane": plane, "peer": peer, "telemetry": {"path_id": path_id, "overflow": False, "hops": hops}}


def path_id(*names):
    value = 0
    for name in names:
        value ^= switch_id(FABRIC.switch(name))
    return value


def test_int_names_the_switches_of_the_longest_path_with_the_deepest_queue():
    shallow = stack(path_id("p0l0", "p0s0", "p0l1"), [0, 80, 0])
    deep = stack(path_id("p0l0", "p0s1", "p0l1"), [0, 8000, 0])
    endpoints = [{"rank": 0, "connections": [shallow, deep, stack(path_id("p0l0"), [10**6])]}]
    found = longest_int_path(FABRIC, endpoints, paths_of)
    assert (found.source, found.destination, found.plane, found.coarse) == ("h0", "h1", 0, False)
    assert [(hop.switch, hop.queue_bytes) for hop in found.hops] == [
        ("p0l0", 0),
        ("p0s1", 8000),
        ("p0l1", 0),
    ]


def test_int_of_an_unknown_path_names_no_switch():
    endpoints = [{"rank": 0, "connections": [stack(0xFFF, [0, 0, 0])]}]
    found = longest_int_path(FABRIC, endpoints, paths_of)
    assert [hop.switch for hop in found.hops] == ["?", "?", "?"]
    assert found.why_unknown == "no path of the present routes has the id 0xfff"


@pytest.mark.parametrize("telemetry", [None, {"path_id": 0, "hops": []}])
def test_without_int_there_is_no_path(telemetry):
    endpoints = [{"rank": 0, "connections": [{"plane": 0, "peer": 1, "telemetry": telemetry}]}]
    assert longest_int_path(FABRIC, endpoints, paths_of) is None
