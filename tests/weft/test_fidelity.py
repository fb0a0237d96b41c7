"""Segments in place of packets: how far results are from those of packets, and what they do not go with."""

from __future__ import annotations

from typing import Any

import pytest

from tests.refusals import refused
from tests.weft.small_model import SMALL_MODEL
from weft import Fabric, topologies
from weft.controller.errors import SettingError
from weft.controller.features.ecn import EcnProfile
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.quantities.traffic_classes import CONTROL_CLASS, DATA_CLASS
from weft.results.printing import show_run
from weft.results.results_file import read_results
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.scenario import BufferSection, FidelitySection, TransportSection, parse_scenario

PAGE = ROOT / "docs" / "fidelity.md"
FABRIC = {
    "planes": 1,
    "leaves": 4,
    "spines": 4,
    "hosts_per_leaf": 4,
    "host_rate": "400Gb/s",
    "oversubscription": 1.0,
    "queue_capacity": "8MiB",
}
TRAFFIC: dict[str, dict[str, Any]] = {
    "ring all-reduce": {
        "collective": "allreduce",
        "algorithms": ["ring"],
        "data": "lengths",
        "sizes": ["16MiB"],
    },
    "all-to-all": {"collective": "alltoall", "data": "lengths", "sizes": ["32MiB"]},
    "incast": {"incast": "h0", "bytes_per_sender": "1MiB", "data": "lengths"},
    "permutation": {"permutation": "4MiB", "data": "lengths"},
    "training step": {
        "model": SMALL_MODEL,
        "parallel": {"data": 8, "pipeline": 2},
        "micro_batches": 2,
    },
}


def run(name: str, congestion_control: str = "fixed-window", segment: str = "", **more: Any) -> RunResult:
    fidelity = {"fidelity": {"segment": segment}} if segment else {}
    return run_scenario(
        parse_scenario(
            {
                "clock": "virtual",
                "mtu": 4096,
                "int": False,
                "fabric": FABRIC,
                "transport": {"congestion_control": congestion_control},
                "traffic": [TRAFFIC[name]],
                **fidelity,
                **more,
            }
        )
    )


def duration_ps(result: RunResult) -> int:
    return result.phases[-1].end_ps - result.phases[-1].start_ps


# Beside packets, in per cent of the duration (docs/fidelity.md).
BOUNDS = {
    ("ring all-reduce", "fixed-window"): 0.2,
    ("ring all-reduce", "dcqcn"): 0.2,
    ("ring all-reduce", "swift"): 0.2,
    ("all-to-all", "fixed-window"): 10,
    ("all-to-all", "dcqcn"): 10,
    ("all-to-all", "swift"): 10,
    ("incast", "fixed-window"): 0.1,
    ("incast", "dcqcn"): 10,
    ("incast", "swift"): 5,
    ("permutation", "fixed-window"): 1,
    ("permutation", "dcqcn"): 5,
    ("permutation", "swift"): 5,
    # A window that only just fills the path: one flow of a ring gets 377 Gb/s in place of 399, and all wait for it.
    ("training step", "fixed-window"): 4,
    ("training step", "dcqcn"): 1,
    ("training step", "swift"): 1,
}


@pytest.mark.parametrize(("traffic", "congestion_control"), BOUNDS)
def test_durations_are_those_of_packets_within_a_bound(traffic, congestion_control):
    packets = run(traffic, congestion_control)
    segments = run(traffic, congestion_control, "32KiB")
    error = 100 * (duration_ps(segments) / duration_ps(packets) - 1)
    bound = BOUNDS[traffic, congestion_control]
    assert abs(error) <= bound
    shown = f"{duration_ps(packets) / 1e6:,.2f} | {error:+.2f} | {bound:g}".replace("-", "−")
    assert f"| {traffic} | {congestion_control} | {shown} |" in PAGE.read_text(encoding="utf-8")
    (fidelity,) = segments.fidelity
    assert 0 < fidelity.segments < fidelity.packets_in_segments <= fidelity.data_packets
    assert packets.fidelity == []


def fabric_of(segment_bytes: int | None, **options: Any) -> Fabric:
    """One pair of hosts, two switches apart."""
    spec = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1, host_rate_bps=400e9)
    fidelity = FidelitySection(segment=segment_bytes)
    return Fabric(spec, clock="virtual", mtu_bytes=4096, int_telemetry=False, fidelity=fidelity, **options)


@pytest.mark.parametrize("retransmission", ["go-back-n", "selective-repeat"])
@pytest.mark.parametrize("size_bytes", [32_768, 100_000, 1 << 20])
def test_a_transfer_over_idle_links_ends_as_with_packets(retransmission, size_bytes):
    """To a nanosecond; hosts and links count the same packets and bytes of data."""
    found = []
    for segment_bytes in (None, 65_536):
        transport = TransportSection(retransmission=retransmission)
        with fabric_of(segment_bytes, transport=transport) as fabric:
            fabric.incast("h0", size_bytes, data="lengths")
            (phase,) = fabric.phases
            sender = fabric.hosts.stats()[1]
            data = sender["planes"][0]["transmit"]["classes"][DATA_CLASS]["transmitted"]
            segments = sender["totals"]["segments_sent"]
            found.append((phase.end_ps - phase.start_ps, data, sender["totals"]["data_packets_sent"]))
            assert (segments > 0) == (segment_bytes is not None)
            fabric.packet_conservation()
    (packets_ps, *of_packets), (segments_ps, *of_segments) = found
    assert of_packets == of_segments
    assert abs(packets_ps - segments_ps) <= 1000


def test_what_waits_is_marked_packet_by_packet():
    """With ECN from 100 kB on, DCQCN hears of as many marks within a factor, and all packets are accounted for."""
    marked = []
    for segment in ("", "32KiB"):
        result = run("permutation", "dcqcn", segment)
        marked.append(sum(plane.ecn_marked_packets for plane in result.planes))
        assert result.packet_conservation is not None
    assert marked[0] / 2 < marked[1] < 2 * marked[0]


def test_lost_segments_are_sent_again():
    small = {**FABRIC, "queue_capacity": "512KiB"}
    result = run("incast", "dcqcn", "32KiB", fabric=small)
    assert result.retransmissions > 0
    assert result.ok


@pytest.mark.parametrize("retransmission", ["go-back-n", "selective-repeat"])
def test_drops_and_answers_are_counted_by_packets(retransmission):
    """Of a switch, its ports and its memory alike; links carry as many answers as hosts have sent."""
    spec = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=4, host_rate_bps=400e9)
    with Fabric(
        spec,
        clock="virtual",
        mtu_bytes=1024,
        int_telemetry=False,
        fidelity=FidelitySection(segment=32_768),
        transport=TransportSection(retransmission=retransmission),
        buffer=BufferSection(capacity=512 * 1024),
    ) as fabric:
        fabric.incast("h0", 1 << 20, data="lengths")
        stats = fabric.lab.switch_stats()
        hosts = fabric.hosts.stats()
    assert stats is not None
    leaf = stats["switches"]["p0l0"]
    assert leaf["buffer"] is not None
    refused = sum(group["dropped_packets"] for port in leaf["buffer"]["ports"].values() for group in port["ingress"])
    by_ports = sum(port["transmit"]["tail_dropped"]["packets"] for port in leaf["ports"].values())
    assert 0 < by_ports == leaf["drops"]["tail_drop"] == refused
    answers = [hosts[0]["totals"][f"{kind}_sent"] for kind in ("acknowledgements", "sequence_naks", "cnps")]
    answered = hosts[0]["planes"][0]["transmit"]["classes"][CONTROL_CLASS]["transmitted"]["packets"]
    assert 0 < sum(answers) == answered
    assert answers[1] == sum(host["totals"]["sequence_naks_received"] for host in hosts) > 0


def test_a_run_says_what_travelled(capsys):
    result = run("permutation", segment="32KiB")
    show_run(result, as_json=False)
    printed = " ".join(capsys.readouterr().out.split())
    (fidelity,) = result.fidelity
    assert fidelity.sentence in printed
    assert "segments of up to 32KiB in place of packets of 4,096 B for messages of 16KiB or more" in printed


def test_what_travelled_is_read_back(tmp_path):
    result = run("permutation", segment="32KiB")
    result.save(tmp_path)
    assert read_results(tmp_path / "results.json").fidelity == result.fidelity


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"pfc": {"classes": [3]}},
            {"place": "scenario: fidelity.segment", "problem": "segments do not go with pfc"},
        ),
        (
            {"credits": {"classes": [3]}},
            {"place": "scenario: fidelity.segment", "problem": "segments do not go with credits"},
        ),
        (
            {"faults": {"loss": 0.001}},
            {"place": "scenario: fidelity.segment", "problem": "segments do not go with faults"},
        ),
        (
            {"switching": {"mode": "cut-through"}},
            {"place": "scenario: fidelity.segment", "problem": "segments do not go with"},
        ),
        (
            {"switching": {"depth_unit": "packets"}},
            {"place": "scenario: fidelity.segment", "problem": "segments do not go with"},
        ),
        (
            {"nic": {"dma_latency": "1us"}},
            {"place": "scenario: fidelity.segment", "problem": "segments do not go with nic"},
        ),
        (
            {"int": True, "transport": {"congestion_control": "hpcc"}},
            {"place": "scenario: fidelity.segment", "problem": "congestion_control: hpcc"},
        ),
        (
            {"transport": {"path": "spray", "retransmission": "selective-repeat"}},
            {"place": "scenario: fidelity.segment", "problem": "segments do not go with"},
        ),
        (
            {
                "routing": {"load_balancing": "random"},
                "transport": {"retransmission": "selective-repeat"},
            },
            {"place": "scenario: fidelity.segment", "problem": "routing"},
        ),
        (
            {"observe": {"captures": ["h0:0"]}},
            {"place": "scenario: fidelity.segment", "problem": "segments do not go with observe"},
        ),
        (
            {"int": True, "observe": {"int": "all"}},
            {"place": "scenario: fidelity.segment", "problem": "segments do not go with observe"},
        ),
        (
            {"mtu": 256, "fidelity": {"segment": "1MiB"}},
            {"place": "scenario: fidelity.segment", "valid": "512 to 65280 B"},
        ),
        (
            {"fidelity": {"segment": "4KiB"}},
            {"place": "scenario: fidelity.segment", "valid": "8192 to 1044480 B"},
        ),
        (
            {"fabric": {**FABRIC, "queue_capacity": "200KiB"}},
            {"place": "scenario: fidelity.segment", "valid": "up to 25600 B"},
        ),
        (
            {"ecn": {"kmin": "10KB", "kmax": "20KB", "pmax": 0.2}},
            {"place": "scenario: fidelity.segment", "valid": "up to 10000 B"},
        ),
        (
            {"ecn": {"at": "enqueue"}},
            {"place": "scenario: fidelity.segment", "problem": "segments do not go with ecn"},
        ),
        (
            {"traffic": [{"collective": "allreduce", "algorithms": ["in-network"]}]},
            {"place": "scenario: traffic[0]", "valid": "other algorithms"},
        ),
        (
            {"clock": "real"},
            {"place": "scenario: fidelity.segment", "problem": "segments do not go with clock"},
        ),
    ],
)
def test_what_segments_do_not_go_with(options, message):
    with refused(BadInputError, **message):
        run("permutation", **{"segment": "32KiB", **options})


@pytest.mark.parametrize(
    ("kmin_bytes", "at", "message"),
    [
        (100_000, "dequeue", {"valid": "1600000 or more", "problem": "1600000"}),
        (1_600_000, "enqueue", {"valid": "'dequeue'", "problem": "queue'"}),
    ],
)
def test_whole_segments_are_not_marked_later_either(kmin_bytes, at, message):
    with fabric_of(32_768) as fabric:
        fabric.lab.controller.set_ecn({3: EcnProfile(1_600_000, 2_000_000, 1.0)})
        with refused(SettingError, **message):
            fabric.lab.controller.set_ecn({3: EcnProfile(kmin_bytes, 2_000_000, 1.0)}, at)


def test_segments_are_not_captured(tmp_path):
    with fabric_of(32_768) as fabric:
        for capture in (fabric.capture, fabric.capture_port):
            node = "h0" if capture == fabric.capture else "p0l0"
            with refused(BadInputError, place="fidelity.segment", problem="segments are not captured"):
                capture(node, 0, tmp_path / "x.pcap")
