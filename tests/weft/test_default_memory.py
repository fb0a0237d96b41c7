"""Default queues and shared memory by the rate of ports, and ECN's thresholds that fit into them."""

from __future__ import annotations

import pytest

from tests.refusals import refused
from weft import topologies
from weft.clocks.endpoint_settings import patient_timeout_ps
from weft.clocks.switch_configs import switch_configs
from weft.controller.features.ecn import DCQCN_SCALE
from weft.errors import BadInputError
from weft.run.lint import RULES, Plan
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import parse_scenario
from weft.topologies.files.writing import WRITTEN_FORMATS, written
from weft.topologies.paths import serialisation_ps
from weft.topologies.port_memory import default_queue_capacity_bytes, default_shared_bytes, link_of

GBPS = 10**9
KIB, MIB = 1024, 1024 * 1024
SENDERS, SENT_BYTES = 15, 2 * MIB
FRAME_BYTES = 4200


def star(rate_gbps=100, hosts=SENDERS + 1, **keys):
    fabric = {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": hosts, "host_rate": rate_gbps * GBPS}
    return {"fabric": {**fabric, **keys}, "clock": "virtual", "transport": {"congestion_control": "dcqcn"}}


def warnings_of(**sections):
    spec = run_spec(parse_scenario({**star(), **sections}))
    configs = switch_configs(spec.fabric, spec.options, FRAME_BYTES)
    return [finding.sentence for finding in RULES["ecn-unreached"].find(Plan(spec, configs))]


@pytest.mark.parametrize("rate_bps", [10**6, 10**9, *(n * GBPS for n in (10, 25, 40, 50, 100, 200, 400, 800)), 10**14])
def test_default_queues_hold_more_than_the_depth_from_which_all_is_marked(rate_bps):
    marks = DCQCN_SCALE.profile(rate_bps)
    assert default_queue_capacity_bytes(rate_bps) > 3 * marks.kmax_bytes
    # Half of what two ports share: all that one queue gets there with an alpha of 1.
    assert default_shared_bytes(rate_bps) > 2 * marks.kmin_bytes


def test_up_to_10_gbps_ports_have_512_kib_and_faster_ones_more():
    link = link_of(10 * GBPS, 0, None)
    assert (link.queue_capacity_bytes, link.memory_to_share_bytes) == (512 * KIB, 512 * KIB)
    assert link_of(10**9, 0, None).queue_capacity_bytes == 512 * KIB
    fast = link_of(400 * GBPS, 0, None)
    assert (fast.queue_capacity_bytes, fast.memory_to_share_bytes) == (20 * MIB, 4_000_000)


def test_a_queue_that_is_given_is_what_ports_have_and_share():
    assert link_of(400 * GBPS, 0, 512 * KIB).memory_to_share_bytes == 512 * KIB


def test_every_port_has_the_memory_of_its_own_rate():
    spec = run_spec(parse_scenario({"fabric": {"host_rate": "100Gb/s", "fabric_rate": "400Gb/s"}}))
    found = {port.link.rate_bps // GBPS: port.link.queue_capacity_bytes for port in spec.fabric.switch("p0l0").ports}
    assert found == {100: 5 * MIB, 400: 20 * MIB}


def test_ports_under_flow_control_share_what_switches_of_their_rate_have():
    spec = run_spec(parse_scenario({**star(100), "pfc": {"classes": [3]}}))
    (config,) = switch_configs(spec.fabric, spec.options, FRAME_BYTES)
    assert config.buffer is not None
    assert config.buffer.capacity_bytes == 16_000_000
    spec = run_spec(parse_scenario({**star(100, queue_capacity="2MiB"), "pfc": {"classes": [3]}}))
    (config,) = switch_configs(spec.fabric, spec.options, FRAME_BYTES)
    assert config.buffer is not None
    assert config.buffer.capacity_bytes == 16 * 2 * MIB


@pytest.mark.parametrize("format_name", WRITTEN_FORMATS)
@pytest.mark.parametrize("queue_capacity", [None, "1MiB"])
def test_a_file_keeps_what_is_given_and_leaves_out_what_follows_from_the_rate(tmp_path, format_name, queue_capacity):
    fabric = run_spec(parse_scenario(star(100, queue_capacity=queue_capacity))).fabric
    path = tmp_path / ("net.json" if format_name == "node_link" else "net.graphml")
    path.write_text(written(fabric, format_name))
    again = run_spec(parse_scenario({"fabric": {"path": str(path)}})).fabric
    assert [link.link for link in again.links] == [link.link for link in fabric.links]


def test_parameters_of_a_fabric_with_default_memory_make_it_again():
    fabric = topologies.leaf_spine(host_rate_bps=100e9, fabric_rate_bps=400e9)
    assert topologies.from_parameters(fabric.parameters) == fabric
    assert fabric.parameters["queue_capacity_bytes"] is None


@pytest.mark.parametrize(
    ("rate_gbps", "mtu"),
    [(10, 1024), (10, 4096), (25, 4096), (40, 4096), (100, 1024), (100, 4096), (400, 4096), (800, 4096)],
)
def test_an_incast_under_dcqcn_is_marked_and_ends_near_the_ideal(rate_gbps, mtu):
    """With 512 KiB at any rate it takes fifty times the ideal at 100 Gb/s, and nothing is marked at 400 and 800.

    With an alpha that decays every microsecond at any rate, packets are repeated twice each at 10 Gb/s and 4,096 bytes.
    """
    traffic = [{"incast": "h0", "bytes_per_sender": SENT_BYTES, "data": "lengths"}]
    result = run_scenario(parse_scenario({**star(rate_gbps), "mtu": mtu, "traffic": traffic}))
    (flows,) = result.flows
    ideal_ps = SENDERS * SENT_BYTES * 8 * 10**12 // (rate_gbps * GBPS)
    assert flows.time_ps < 2 * ideal_ps
    assert result.cnps > 0
    assert result.retransmissions < SENDERS * SENT_BYTES / mtu / 4
    assert result.warnings == []


@pytest.mark.parametrize("rate_gbps", [10, 100, 400, 800])
@pytest.mark.parametrize("hosts", [4, 16, 64])
@pytest.mark.parametrize("pfc", [{}, {"classes": [3]}])
def test_defaults_need_no_warning(rate_gbps, hosts, pfc):
    assert warnings_of(**star(rate_gbps, hosts), pfc=pfc) == []


@pytest.mark.parametrize("ecn", [{}, {"kmin": "1MiB", "kmax": "4GiB", "pmax": 0.9}])
def test_queues_too_deep_for_cells_of_80_bytes_are_marked_in_larger_ones(ecn):
    traffic = [{"incast": "h0", "bytes_per_sender": SENT_BYTES, "data": "lengths"}]
    result = run_scenario(parse_scenario({**star(4000), "mtu": 4096, "ecn": ecn, "traffic": traffic}))
    # 15 senders put up to 29 MB into the queue; of the default thresholds kmin is 16 MB there.
    assert result.cnps > 0
    assert result.flows[0].bytes_delivered == SENDERS * SENT_BYTES


def test_every_rate_that_is_valid_runs_with_the_default_thresholds():
    traffic = [{"permutation": "64KiB"}]
    result = run_scenario(parse_scenario({**star(100_000, 2), "traffic": traffic}))
    assert result.flows[0].bytes_delivered == 2 * 64 * KIB


@pytest.mark.parametrize(
    ("ecn", "message"),
    [
        (
            {},
            {
                "place": "scenario: ecn",
                "valid": (
                    "kmax up to 601881476 B; or depths in cells, which grow with it: target: "
                    "embedded with switching.depth_unit: cells"
                ),
            },
        ),
        (
            {"kmin": "1MiB", "kmax": "4GiB", "pmax": 0.9},
            {
                "place": "scenario: ecn.kmax",
                "valid": (
                    "kmax up to 601881476 B; or depths in cells, which grow with it: target: "
                    "embedded with switching.depth_unit: cells"
                ),
            },
        ),
    ],
)
def test_depths_in_packets_that_do_not_hold_the_thresholds_are_refused_with_advice(ecn, message):
    switching = {"depth_unit": "packets"}
    scenario = parse_scenario({**star(100_000, 2), "switching": switching, "ecn": ecn})
    with refused(BadInputError, **message):
        run_scenario(scenario)


CANNOT_MARK = {
    "a queue below the default thresholds": (
        {**star(400, queue_capacity="512KiB")},
        ["400 Gb/s", "p0l0:1", "queues are full, at 524288 B", "above 1600000 B", "raise fabric.queue_capacity"],
    ),
    "thresholds above the default queue": (
        {"ecn": {"kmin": "6MiB", "kmax": "8MiB", "pmax": 0.5}},
        ["full, at 5242880 B", "above 6291456 B, ecn.kmin"],
    ),
    "thresholds that no queue of a shared memory reaches": (
        {"buffer": {"capacity": "700KiB"}},
        ["full, at 358400 B", "buffer.capacity or buffer.alpha"],
    ),
    "a pause before the thresholds": (
        {**star(100, 4), "pfc": {"classes": [3], "xoff": "100KiB"}},
        ["PFC has paused all that send to them, at 307200 B", "above 400000 B", "raise pfc.xoff"],
    ),
    "a pause by alpha": (
        {**star(100, 4), "pfc": {"classes": [3], "alpha": 0.03}},
        ["PFC has paused all", "buffer.capacity or pfc.alpha"],
    ),
    "credits for less than the thresholds that are given": (
        {**star(100, 4), "credits": {"classes": [3]}, "ecn": {"kmin": "300KiB", "kmax": "400KiB", "pmax": 0.5}},
        ["out of credits, at 196608 B", "raise credits.buffer"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CANNOT_MARK)
def test_marks_that_never_come_are_announced(case):
    sections, words = CANNOT_MARK[case]
    (warning,) = warnings_of(**sections)
    for word in words:
        assert word in warning


def test_nobody_is_warned_who_needs_no_marks():
    tiny = star(400, queue_capacity="64KiB")
    assert warnings_of(**{**tiny, "transport": {"congestion_control": "fixed-window"}}) == []
    assert len(warnings_of(**tiny)) == 1
    thresholds = {"kmin": "100KiB", "kmax": "200KiB", "pmax": 0.5}
    assert len(warnings_of(**{**tiny, "transport": {}, "ecn": thresholds})) == 1
    assert warnings_of(**{**star(100), "credits": {"classes": [3]}}) == []


def test_the_warning_comes_before_the_run_and_stays_in_its_results():
    said: list[str] = []
    scenario = parse_scenario({**star(400, 2, queue_capacity="64KiB"), "traffic": [{"permutation": "4KiB"}]})
    result = run_scenario(scenario, said.append)
    (warning,) = result.warnings
    assert "does not mark" in warning
    began = next(index for index, line in enumerate(said) if "compiling" in line)
    assert said.index(f"warning: scenario: {warning}") < began


def test_no_timeout_waits_for_more_than_the_memory_that_ports_share():
    fabric = topologies.leaf_spine(planes=1, leaves=2, spines=1, host_rate_bps=100 * GBPS)
    whole, shared = (patient_timeout_ps(fabric, 1128, shared_bytes=each) for each in (None, 512 * 1000))
    assert whole - shared == serialisation_ps(5 * MIB - 512 * 1000, 100 * GBPS)
