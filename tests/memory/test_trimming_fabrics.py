"""Packet trimming in whole fabrics: which queues trim, where trimmed packets go, and what results say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.refusals import refused
from weft import topologies
from weft.clocks.environment import require_for
from weft.clocks.switch_configs import switch_configs
from weft.controller.features.identity import class_entities
from weft.errors import BadInputError, EnvironmentLacksError
from weft.results.results_file import read_results
from weft.results.trimming import TrimmingResult
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import TrimmingSection, parse_scenario
from weft.scenario.options import FabricOptions
from weft.switch.cli.command import switch

FABRIC = {
    "planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 3, "host_rate": "100Gbps", "delay": "1us",
    "queue_capacity": "40KB",
}  # fmt: skip
# RoCEv2's data has DSCP 26. Its receivers drop what is trimmed, and hear of the loss by the next packet.
TRIMMING = {"classes": [3], "trimmable_dscps": [26]}
INCAST = {"incast": "h0", "bytes_per_sender": "128KiB"}


def run(**keys: Any) -> Any:
    return run_scenario(parse_scenario({"clock": "virtual", "fabric": FABRIC, "traffic": [INCAST], **keys}))


def trimming_of(result: Any) -> TrimmingResult:
    (trimming,) = result.trimming
    assert isinstance(trimming, TrimmingResult)
    return trimming


@pytest.mark.parametrize("ip_version", [4, 6])
@pytest.mark.parametrize("buffer", [{}, {"capacity": "250KB", "alpha": {3: 0.25}}])
def test_an_incast_is_trimmed_instead_of_dropped(ip_version: int, buffer: dict[str, Any]) -> None:
    dropping = run(ip_version=ip_version, buffer=buffer)
    assert dropping.trimming == []
    assert dropping.drops["queue full"] > 0
    result = run(trimming=TRIMMING, ip_version=ip_version, buffer=buffer)
    trimming = trimming_of(result)
    assert trimming.trimmed_packets > 0
    assert trimming.most_trimmed_port == "p0l0:1"
    assert "queue full" not in result.drops
    assert result.drops.get("queue trimmed", 0) == trimming.trim_drops
    # All that was not dropped as a trimmed packet has come to its receiver, which has refused it.
    refused_packets = sum(count for cause, count in result.drops.items() if cause.startswith("nic "))
    assert refused_packets == trimming.trimmed_packets - trimming.trim_drops
    assert all(each.bytes_delivered == 5 * 128 * 1024 for each in result.flows)


def test_results_do_not_depend_on_workers_and_are_read_back(tmp_path: Path) -> None:
    results = [run(trimming=TRIMMING, workers=workers) for workers in (1, 3)]
    for number, result in enumerate(results):
        result.save(tmp_path / str(number))
    assert (tmp_path / "0" / "results.json").read_bytes() == (tmp_path / "1" / "results.json").read_bytes()
    assert read_results(tmp_path / "0" / "results.json").trimming == results[0].trimming


def test_segments_are_trimmed_packet_by_packet() -> None:
    traffic = [{**INCAST, "bytes_per_sender": "512KiB", "data": "lengths"}]
    result = run(
        fabric={**FABRIC, "queue_capacity": "160KB"}, trimming=TRIMMING, traffic=traffic, mtu=4096, int=False,
        fidelity={"segment": "16KiB"}, transport={"congestion_control": "dcqcn"},
    )  # fmt: skip
    trimming = trimming_of(result)
    # Full frames have 4,154 bytes or, with a RETH, 4,170; a segment cut as a whole would lose almost four of them.
    assert 4154 - 128 <= trimming.trimmed_bytes / trimming.trimmed_packets <= 4170 - 128


def test_ports_to_hosts_mark_the_last_hop_and_classes_follow_the_dscps() -> None:
    spec = run_spec(parse_scenario({"fabric": FABRIC, "trimming": {"classes": [3], "queue": 7}}))
    for config, described in zip(switch_configs(spec.fabric, spec.options, 1200), spec.fabric.switches, strict=True):
        for port in config.ports:
            assert port.trimming is not None
            is_last = described.port(port.port).peer_is_host
            assert (port.trimming.dscp, port.trimming.queue) == (16 if is_last else 12, 7)
            assert port.trimming.trimmable_dscps == (4, 8)
    (more,) = spec.options.trimming.of_features(spec.options)
    assert dict(more.classes) == {4: 3, 8: 3, 12: 7, 16: 7}  # type: ignore[attr-defined]
    assert len(class_entities((3,), more.classes)) == 2 * (2 + 4)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("sections", "place", "problem"),
    [
        ({"trimming": {"size": "128B"}}, "trimming", "which queues trim"),
        ({"trimming": {"classes": [3], "queue": 3}}, "trimming", "queue: 3 is one of the classes that trim"),
        ({"trimming": {"classes": [3], "dscp": 4}}, "trimming", "dscp: 4 is one of trimmable_dscps"),
        ({"trimming": {"classes": [4]}}, "trimming.classes", "switches do not keep class 4 of data apart"),
        ({"trimming": {"classes": [3]}, "pfc": {"classes": [3]}}, "trimming.classes", "lossless by pfc.classes"),
        ({"trimming": {"classes": [3]}, "credits": {"classes": [3]}}, "trimming.classes", "by credits.classes"),
        ({"trimming": {"classes": [3], "dscp": 26}}, "trimming.dscp", "26 is the DSCP of packets in class 3"),
        ({"trimming": {"classes": [3], "size": "60B"}}, "trimming.size", "60"),
    ],
)
def test_refused_settings(sections: dict[str, Any], place: str, problem: str) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_scenario({"fabric": FABRIC, **sections})
    assert caught.value.place == f"scenario: {place}"
    assert problem in caught.value.problem


def test_bmv2_does_not_trim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.clocks.environment.require_bmv2", lambda: ("switch", "cli"))  # it may not be installed
    options = FabricOptions(clock="real", target="bmv2", dilation=1, trimming=TrimmingSection(classes=[3]))
    with refused(EnvironmentLacksError, problem="BMv2 does not have trimming"):
        require_for(topologies.leaf_spine(delay_ps=0), options)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--trim-dscp", "12"], "--trim-class is missing"),
        (["--trim-class", "3", "--trim-dscp", "12"], "--trim-class needs --trim-dscp and --trim-trimmable-dscp"),
    ],
)
def test_options_of_a_switch_that_go_together(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(switch, ["--no-p4", *arguments])
    assert result.exit_code == 2
    assert said in result.output
