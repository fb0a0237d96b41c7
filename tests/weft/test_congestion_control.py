"""Congestion controls on a fabric whose switches mark ECN and stamp INT: queues, shares and throughput."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from tests.refusals import refused
from weft import topologies
from weft.engine import congestion_control_kind, congestion_control_names
from weft.errors import BadInputError
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric
from weft.run.runner import run_scenario
from weft.scenario import EcnSection, TransportSection, fabric_options, load_scenario, parse_scenario
from weft.topologies.int_rates import STANDARD_INT_RATES
from weft.topologies.round_trips import loaded_round_trip_ps
from weft.traffic.messages import as_message, read_message
from weft.traffic.patterns import Flow, incast
from weft.traffic.transport_settings import TransportSettings

US, MS = 1_000_000, 1_000_000_000
SENDERS = 4


def star(hosts=SENDERS + 1, rate_bps=10**11, queue_capacity_bytes=512 * 1024):
    return topologies.leaf_spine(
        planes=1,
        leaves=1,
        spines=0,
        hosts_per_leaf=hosts,
        host_rate_bps=rate_bps,
        queue_capacity_bytes=queue_capacity_bytes,
    )


@dataclass
class Window:
    """Counters of the switch's port to the receiver over an interval."""

    utilisation: float
    max_queue_bytes: int
    drops: int
    bytes_by_sender: list[int]
    round_trip_ps: int

    @property
    def fairness(self):
        """Jain's fairness index: 1 if all shares are equal."""
        shares = np.array(self.bytes_by_sender, dtype=float)
        return shares.sum() ** 2 / (len(shares) * (shares**2).sum())


def watch(flows, before_ps, during_ps, topology=None, port="1", **options):
    """Run flows; after `before_ps`, observe a port for `during_ps` while all of them still send."""
    topology = topology or star()
    with Fabric(topology, clock="virtual", **options) as fabric:
        group, call = fabric.hosts, fabric.lab.controller.call

        def sent():
            return [each["totals"]["data_bytes_sent"] for each in group.stats()[1:]]

        run = group.prepare_traffic(flows)
        group.start(run)
        call(asyncio.sleep(before_ps / 1e12))
        fabric.lab.reset_switch_stats()
        first = sent()
        call(asyncio.sleep(during_ps / 1e12))
        shares = [after - before for after, before in zip(sent(), first, strict=True)]
        stats = fabric.lab.switch_stats()["switches"]["p0l0"]["ports"][port]["transmit"]
        rate_bps = topology.switch("p0l0").port(int(port)).link.rate_bps
        carried_ps = stats["transmitted"]["bytes"] * 8 * 10**12 / rate_bps
        window = Window(
            utilisation=carried_ps / during_ps,
            max_queue_bytes=stats["max_queue_depth_bytes"],
            drops=stats["tail_dropped"]["packets"],
            bytes_by_sender=shares,
            round_trip_ps=loaded_round_trip_ps(topology, fabric.lab.frame_bytes),
        )
        assert group.wait(run).finished_ps
    return window


def transport(name, **parameters):
    return TransportSection(congestion_control=name, parameters=parameters)


def test_hpcc_empties_the_queue_and_leaves_head_room():
    flows = incast(0, list(range(SENDERS + 1)), 6_000_000)
    fixed = watch(flows, 300 * US, 500 * US)
    hpcc = watch(flows, 300 * US, 500 * US, transport=transport("hpcc"))
    assert hpcc.utilisation == pytest.approx(0.95, abs=0.04)
    assert hpcc.drops == 0
    assert hpcc.fairness > 0.95
    frame_bytes = 1200
    assert hpcc.max_queue_bytes < 2 * SENDERS * frame_bytes < fixed.max_queue_bytes / 4
    assert fixed.utilisation > 0.99


def test_swift_keeps_the_delay_near_its_target():
    flows = incast(0, list(range(SENDERS + 1)), 6_000_000)
    topology = star()
    target_us = 30
    section = transport("swift", base_target=f"{target_us}us", flow_scaling_range="0us")
    swift = watch(flows, 300 * US, 500 * US, topology, transport=section)
    idle_ps = swift.round_trip_ps
    # What the target leaves above the idle round trip is the queue, give or take each sender's increase.
    queue_bytes = (target_us * US - idle_ps) * 10**11 // 8 // 10**12
    assert swift.max_queue_bytes == pytest.approx(queue_bytes, rel=0.25)
    assert swift.utilisation > 0.98
    assert swift.drops == 0
    assert swift.fairness > 0.9


TWO_TIERS = {"kind": "leaf_spine", "leaves": 2, "spines": 1}
THREE_TIERS = {"kind": "fat_tree", "pods": 2, "leaves": 2, "spines": 1}


@pytest.mark.parametrize("tiers", [TWO_TIERS, THREE_TIERS], ids=["two tiers", "three tiers"])
@pytest.mark.parametrize(
    ("rate", "mtu_bytes", "before_ms"), [(10, 1024, 3), (10, 4096, 3), (100, 1024, 1), (100, 4096, 1)]
)
def test_swift_gives_a_far_flow_what_it_gives_a_near_one(tiers, rate, mtu_bytes, before_ms):
    """One within the leaf, one from as far as can be, into the same port: both target the same queue depth."""
    section = tiers | {"planes": 1, "hosts_per_leaf": 2, "host_rate": f"{rate}Gb/s", "queue_capacity": "1MiB"}
    topology = parse_scenario({"fabric": section}).fabric.network()
    size_bytes = rate * 10**9 // 8 * 2 * before_ms // 1000
    flows = [Flow(source, 0, size_bytes) for source in (1, len(topology.hosts) - 1)]
    swift = watch(flows, before_ms * MS, before_ms * MS, topology, transport=transport("swift"), mtu_bytes=mtu_bytes)
    near, *_, far = swift.bytes_by_sender
    assert 0.8 < near / far < 1.25
    assert swift.utilisation > 0.95


def test_swift_begins_a_large_incast_without_a_loss():
    """120 senders: windows of the path's product each would be 8 MB in a queue of 2."""
    topology = topologies.leaf_spine(
        planes=1, leaves=8, spines=2, hosts_per_leaf=16, host_rate_bps=100e9, queue_capacity_bytes=2 << 20
    )
    with Fabric(topology, clock="virtual", transport=transport("swift")) as fabric:
        result = fabric.run_flows("incast", incast(0, list(range(121)), 65536), data="lengths")
        assert fabric.summary().retransmissions == 0
    line_ps = 120 * 64 * 1152 * 8 * 10
    assert result.time_ps < 1.05 * line_ps


def test_hpcc_sees_the_queue_of_a_link_whose_rate_has_no_standard_code():
    """Four hosts of 100 Gb/s on an uplink of 133.3 Gb/s: it carries 95 %, and nothing waits there."""
    topology = topologies.leaf_spine(
        planes=1, leaves=2, spines=1, hosts_per_leaf=4, host_rate_bps=100e9, oversubscription=3
    )
    flows = [Flow(host, host + 4, 10_000_000) for host in range(4)]
    hpcc = watch(flows, 300 * US, 500 * US, topology, port="5", transport=transport("hpcc"))
    assert topology.switch("p0l0").port(5).link.rate_bps not in STANDARD_INT_RATES
    assert hpcc.utilisation == pytest.approx(0.95, abs=0.04)
    assert hpcc.max_queue_bytes < 20_000
    with Fabric(topology, clock="virtual") as fabric:
        fabric.incast("h0", 65536)
        (path,) = fabric.summary().int_paths
        rates = [hop.rate_bps for hop in path.hops]
    assert sum(rate not in STANDARD_INT_RATES for rate in rates) == 2
    assert 0 not in rates


def test_more_rates_than_int_has_codes_for_are_refused_before_anything_is_built():
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=4, hosts_per_leaf=4)
    links = tuple(
        replace(link, link=replace(link.link, rate_bps=(number + 1) * 10**9))
        for number, link in enumerate(topology.links)
    )
    topology = replace(topology, links=links)
    with refused(BadInputError, place="int", valid="at most 15 with INT, which has 4 bits for a rate"):
        Fabric(topology, clock="virtual")
    Fabric(topology, clock="virtual", int_telemetry=False)


@pytest.mark.parametrize("late_us", [0, 1000])
def test_dcqcn_shares_a_link(late_us):
    """Two flows, the second possibly starting when the first fills the link; in the end each has half of it."""
    rate_bps = 4 * 10**10
    flows = [Flow(1, 0, 60_000_000, 0, 0), Flow(2, 0, 60_000_000, 0, late_us * US)]
    dcqcn = watch(
        flows, 8 * MS, 10 * MS, star(hosts=3, rate_bps=rate_bps), transport=transport("dcqcn"), mtu_bytes=4096
    )
    assert dcqcn.fairness > 0.95
    assert dcqcn.utilisation > 0.85
    assert dcqcn.drops == 0


def test_marks_by_the_depth_left_behind_halve_the_peak_of_those_by_the_depth_met():
    """Two senders at line rate: a mark that waited in the queue it reports arrives one queueing delay late."""

    def peak_bytes(ecn):
        flows = [Flow(sender, 0, 10_000_000) for sender in (1, 2)]
        topology = star(hosts=3, queue_capacity_bytes=4 * 1024 * 1024)
        return watch(flows, 0, 500 * US, topology, transport=transport("dcqcn"), ecn=ecn).max_queue_bytes

    by_default = peak_bytes(EcnSection())
    assert by_default < 0.65 * peak_bytes(EcnSection(at="enqueue"))
    assert by_default == peak_bytes(EcnSection(at="dequeue"))


@pytest.mark.parametrize("name", ["hpcc", "swift", "dcqcn", "fixed-window"])
def test_every_algorithm_finishes_what_it_begins_and_repeats(name):
    def run(workers):
        topology = topologies.leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=2)
        inputs = [np.arange(20_000, dtype=np.int32) * (rank + 1) for rank in range(4)]
        with Fabric(topology, clock="virtual", transport=transport(name), workers=workers) as fabric:
            assert fabric.run(CollectiveRequest("allreduce", inputs, "ring")).result.ok
            fabric.permutation(200_000)
            return fabric.summary().as_dict()

    first = run(1)
    assert first["made_by"]["transport"]["congestion_control"] == name
    assert run(2) == first


@pytest.mark.parametrize(
    ("section", "words"),
    [
        (
            {"congestion_control": "hpc"},
            {
                "place": "s.yaml: transport.congestion_control",
                "valid": f"{', '.join(congestion_control_names())}, or path/to/file.py:Class",
            },
        ),
        (
            {"congestion_control": "hpcc", "parameters": {"etta": 1}},
            {"place": "s.yaml: transport.parameters", "problem": "hpcc has no parameter 'etta'"},
        ),
        (
            {"congestion_control": "dcqcn", "parameters": {"gain": 2}},
            {"place": "s.yaml: transport.parameters", "problem": "dcqcn: gain is 2 (valid: 0 to 1)"},
        ),
        (
            {"congestion_control": "dcqcn", "parameters": {"increase_timer": "5 KB"}},
            {
                "place": "s.yaml: transport.parameters: increase_timer",
                "valid": "a number with ps, ns, us, ms or s",
            },
        ),
        (
            {"parameters": {"window": 0}},
            {"place": "s.yaml: transport.parameters", "problem": "fixed-window: window_bytes is 0"},
        ),
        (
            {"congestion_control": "dcqcn", "preset": "connectx4"},
            {"place": "s.yaml: transport.preset", "problem": "'connectx4' (valid: '"},
        ),
        (
            {"congestion_control": "swift", "preset": "connectx"},
            {"place": "s.yaml: transport.preset", "problem": "swift has no preset"},
        ),
        (
            {"congestion_control": "dcqcn", "parameters": {"clamp_target_rate": 2}},
            {"place": "s.yaml: transport.parameters", "problem": "dcqcn: clamp_target_rate is 2"},
        ),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(section, words):
    with refused(BadInputError, **words):
        parse_scenario({"transport": section}, "s.yaml")


def test_a_preset_brings_its_parameters_and_its_interval_of_notifications():
    def settings(**section):
        return parse_scenario({"transport": section}, "s.yaml").transport.settings()

    default, paper = (
        settings(congestion_control="dcqcn"),
        settings(congestion_control="dcqcn", preset="paper-2015"),
    )
    assert default.preset == congestion_control_kind("dcqcn").presets[0].name
    assert (paper.preset, paper.cnp_interval_in_force) == ("paper-2015", 50 * US)
    connectx = settings(congestion_control="dcqcn", preset="connectx")
    assert connectx.cnp_interval_in_force == 4 * US
    assert settings(congestion_control="dcqcn", preset="connectx", cnp_interval="9us").cnp_interval_in_force == 9 * US
    assert settings(congestion_control="swift").preset is None
    assert read_message(TransportSettings, as_message(connectx)) == connectx
    unclamped = settings(congestion_control="dcqcn", parameters={"clamp_target_rate": False})
    assert unclamped.parameters == {"clamp_target_rate": 0}


def test_notifications_come_as_often_as_their_interval_allows():
    counts = []
    for interval in ("5us", "50us"):
        section = TransportSection(congestion_control="fixed-window", cnp_interval=interval)
        ecn = EcnSection(kmin=5_000, kmax=25_000, pmax=1.0)
        with Fabric(star(hosts=3), clock="virtual", transport=section, ecn=ecn) as fabric:
            fabric.incast("h0", 2_000_000)
            counts.append(fabric.summary().cnps)
    assert counts[0] > 5 * counts[1] > 0


def test_hpcc_needs_int():
    with refused(BadInputError, place="options: transport.congestion_control", problem="needs int: true"):
        fabric_options(int_telemetry=False, transport=transport("hpcc"))


@pytest.mark.parametrize("name", ["hpcc", "swift", "dcqcn", "fixed-window"])
def test_the_lab_runs_under_each(name):
    """Its README's figures, within a tenth: the time at line rate, and each control's queue depth."""
    scenario = load_scenario(Path(__file__).parents[2] / "labs" / "02-congestion-control" / "scenario.yaml")
    scenario = scenario.model_copy(update={"transport": transport(name)})
    result = run_scenario(scenario)
    permutation, incast_flows = result.flows
    milliseconds = {"hpcc": 5.88, "swift": 5.56, "dcqcn": 6.91, "fixed-window": 5.55}
    queue_bytes = {"hpcc": 8.1e5, "swift": 1.7e5, "dcqcn": 5.75e6, "fixed-window": 1.06e6}
    assert incast_flows.time_ps / MS == pytest.approx(milliseconds[name], rel=0.1)
    assert result.planes[0].largest_queue_bytes == pytest.approx(queue_bytes[name], rel=0.1)
    assert permutation.time_ps < 250 * US
    assert result.retransmissions == 0
