"""Buffers, schedulers and PFC in whole fabrics, from scenarios and from Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.refusals import refused
from weft import Fabric, topologies
from weft.clocks.environment import require_for
from weft.errors import BadInputError, EnvironmentLacksError
from weft.paths import ROOT
from weft.results.switch_memory import MemoryResult
from weft.run.runner import run_scenario
from weft.scenario import BufferSection, PfcSection, SchedulingSection, load_scenario, parse_scenario
from weft.scenario.options import FabricOptions

FABRIC = {
    "planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 3, "host_rate": "100Gbps", "delay": "1us",
}  # fmt: skip
SHALLOW = {"capacity": "600KB"}


def run(**keys: Any) -> Any:
    return run_scenario(
        parse_scenario(
            {
                "clock": "virtual",
                "fabric": FABRIC,
                "traffic": [{"incast": "h0", "bytes_per_sender": "512KiB"}],
                **keys,
            }
        )
    )


def memory_of(result: Any) -> MemoryResult:
    (memory,) = result.memory
    assert isinstance(memory, MemoryResult)
    return memory


@pytest.mark.parametrize("ip_version", [4, 6])
def test_pfc_loses_nothing_where_a_shallow_buffer_does(ip_version: int) -> None:
    shallow = {"capacity": "250KB", "alpha": 0.25}
    lossy = run(buffer=shallow, ip_version=ip_version)
    assert memory_of(lossy).threshold_drops > 0
    assert lossy.retransmissions > 0
    lossless = run(buffer=SHALLOW, pfc={"classes": [3], "xoff": "20KB"}, ip_version=ip_version)
    memory = memory_of(lossless)
    assert lossless.retransmissions == memory.threshold_drops == memory.headroom_drops == 0
    assert memory.pauses_sent >= memory.resumes_sent > 0
    assert memory.largest_headroom_bytes > 0
    assert memory.longest_pause_port
    assert lossless.drops == {}


def test_the_victim_of_a_pause_has_a_completion_time_of_its_own() -> None:
    """Lab 3: one flow shares only the path with the incast."""

    def victim_us(xoff: str) -> tuple[float, float]:
        scenario = load_scenario(ROOT / "labs" / "03-switch-memory" / "pfc.yaml")
        alone, beside = run_scenario(scenario.model_copy(update={"pfc": PfcSection(classes=[3], xoff=xoff)})).flows
        records = beside.records
        (victim,) = np.flatnonzero((records["source"] == 8) & (records["destination"] == 1)).tolist()
        assert alone.time_ps == alone.records["completion_ps"][0]
        return alone.time_ps / 1e6, int(records["completion_ps"][victim]) / 1e6

    paused_alone, paused = victim_us("50KB")
    assert paused_alone == pytest.approx(378, rel=0.01)
    assert paused == pytest.approx(1483, rel=0.05)
    _, spared = victim_us("4MB")
    assert spared == pytest.approx(388, rel=0.05)


def test_too_little_headroom_loses_and_is_counted() -> None:
    result = run(buffer=SHALLOW, pfc={"classes": [3], "xoff": "20KB", "headroom": 1000})
    memory = memory_of(result)
    assert memory.headroom_drops > 0
    assert result.drops["queue no_headroom"] == memory.headroom_drops
    assert result.retransmissions > 0
    assert result.flows[0].bytes_delivered == 5 * 512 * 1024


def test_runs_repeat() -> None:
    keys = {"buffer": SHALLOW, "pfc": {"classes": [3]}, "scheduling": {"quantum": {3: 3000, 0: 1500}}}
    assert run(**keys).as_dict() == run(**keys).as_dict()


def test_a_fabric_from_python_has_the_same_options() -> None:
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=3)
    with Fabric(
        topology,
        clock="virtual",
        buffer=BufferSection(capacity=1 << 20),
        pfc=PfcSection(classes=[3], alpha=0.01),
    ) as fabric:
        fabric.incast("h0", 1 << 18)
        summary = fabric.summary()
    assert summary.retransmissions == 0
    assert summary.memory[0].pauses_sent > 0
    assert summary.made_by.parameters["pfc"]["classes"] == [3]


def test_without_shared_memory_there_is_nothing_to_report() -> None:
    assert run().memory == []


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"pfc": {"xoff": "10KB"}}, ["pfc", "which classes"]),
        ({"pfc": {"classes": [8]}}, ["pfc.classes[0]", "valid: 0 to 7", "8"]),
        (
            {"pfc": {"classes": [3], "xoff": "10KB", "alpha": 1}},
            ["xoff (10000 B)", "alpha (1)", "exclude each other"],
        ),
        ({"pfc": {"clases": [3]}}, ["unknown key 'pfc.clases'", "did you mean 'classes'"]),
        ({"buffer": {"alpha": 0}}, ["buffer.alpha", "above 0"]),
        ({"buffer": {"capacity": "0"}}, ["buffer.capacity", "valid: 1518B"]),
        ({"scheduling": {"quantum": {3: 10}}}, ["scheduling.quantum", "64"]),
    ],
)
def test_errors_name_the_key_and_what_is_valid(keys: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_scenario(keys)
    for word in words:
        assert word in str(caught.value)


def test_a_buffer_without_room_for_its_headroom_is_refused() -> None:
    with refused(BadInputError, place="scenario: buffer", problem="100000 B of p0l0 leave nothing"):
        run(buffer={"capacity": "100KB"}, pfc={"classes": [3]})


def test_bmv2_has_none_of_it() -> None:
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2, delay_ps=0)
    options = FabricOptions(
        target="bmv2",
        clock="real",
        dilation=1.0,
        pfc=PfcSection(classes=[3]),
        scheduling=SchedulingSection(quantum={3: 100}),
    )
    with refused(EnvironmentLacksError, problem="BMv2"):
        require_for(topology, options)
