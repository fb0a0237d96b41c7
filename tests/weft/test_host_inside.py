"""Runs on hosts with an inside: rates and times in closed form, results and warnings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weft.errors import BadInputError
from weft.quantities.units import PS_PER_S
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.topologies.hosts.pcie import PcieLink

SLOT_BPS = PcieLink(4, 8).rate_bps(256)
FABRIC = {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 1, "host_rate": "400Gb/s", "delay": "100ns"}
MIB = 2**20
CHUNK = 256 * 1024


def run(host: Any, traffic: Any, **fabric: Any) -> Any:
    tree = {"clock": "virtual", "int": False, "fabric": {**FABRIC, **fabric}, "traffic": [traffic]}
    result = run_scenario(parse_scenario(tree if host is None else {**tree, "host": host}))
    assert result.ok, result.failures
    return result


def transfer(size_bytes: int) -> dict[str, Any]:
    return {"permutation": size_bytes, "data": "lengths"}


def last_ps(result: Any) -> int:
    [flows] = result.traffic["flows"]
    return int(flows.time_ps)


def gpu(**changes: Any) -> dict[str, Any]:
    return {
        "numa": [{}, {"socket": 1}],
        "accelerators": [{"at": "numa0"}],
        "nics": [{"at": "numa0"}],
        "gpudirect": "PHB",
    } | changes


def by_link(result: Any) -> dict[str, Any]:
    return {each.link: each for each in result.host_links}


def test_a_slot_of_eight_lanes_bounds_a_transfer() -> None:
    result = run(gpu(nics=[{"at": "numa0", "pcie": "4x8"}]), transfer(4 * MIB))
    least_ps = 4 * MIB * 8 * PS_PER_S / SLOT_BPS
    assert least_ps < last_ps(result) < 1.05 * least_ps
    links = by_link(result)
    assert set(links) == {"GPU0->numa0", "numa0->NIC0", "NIC0->numa0", "numa0->GPU0"}
    assert links["numa0->NIC0"].busy_share > 0.9
    assert links["numa0->NIC0"].crossed_bytes == 2 * 4 * MIB
    assert any("hosts bound the run, not the network" in each for each in result.warnings)


def test_a_wide_slot_bounds_nothing_and_is_not_warned_of() -> None:
    wide = [{"at": "numa0", "pcie": "6x16"}]
    result = run(gpu(nics=wide, accelerators=wide), transfer(MIB))
    without = run(None, transfer(MIB))
    assert last_ps(without) < last_ps(result) < 1.05 * last_ps(without)
    assert not any("hosts bound" in each for each in result.warnings)
    assert without.host_links == []


def test_the_link_between_sockets_bounds_data_that_cross_it() -> None:
    near = run(gpu(socket_link="80Gb/s"), transfer(MIB))
    far = run(gpu(socket_link="80Gb/s", nics=[{"at": "numa1"}], gpudirect="SYS"), transfer(MIB))
    least_ps = MIB * 8 * PS_PER_S / (80 * 10**9)
    assert least_ps < last_ps(far) < 1.1 * least_ps
    assert last_ps(near) < least_ps / 2
    assert by_link(far)["socket0->socket1"].busy_share > 0.85
    assert "socket0->socket1" not in by_link(near)


def test_data_by_way_of_host_memory_take_copies_and_its_bandwidth() -> None:
    numa = [{"memory": "600Gb/s"}]
    staging = {"chunk": CHUNK, "latency": "2us"}
    direct = run(gpu(numa=numa, gpudirect="PHB"), transfer(4 * MIB))
    staged = run(gpu(numa=numa, gpudirect="PXB", staging=staging), transfer(4 * MIB))
    # Both directions write and read the memory: a quarter each, and the first and the last chunk are copied alone.
    copy_bps = min(600 * 10**9, PcieLink(5, 16).rate_bps(256))
    copies_ps = 2 * (2 * 10**6 + CHUNK * 8 * PS_PER_S / copy_bps)
    least_ps = 4 * MIB * 8 * PS_PER_S / (150 * 10**9) + copies_ps
    assert least_ps < last_ps(staged) < 1.05 * least_ps
    assert last_ps(direct) < 0.5 * last_ps(staged)
    assert by_link(staged)["memory of numa0"].busy_share > 0.75
    # Its acknowledgement waits for the copy that is made before it is sent, and not for the one after it has come.
    [flows] = staged.traffic["flows"]
    assert 0.9 * copies_ps / 2 < flows.time_ps - flows.largest_completion_ps < copies_ps / 2


def test_flows_of_a_workload_wait_for_the_copy_before_they_are_sent() -> None:
    item = {"workload": {"flow_sizes": "websearch", "load": 0.6, "duration": "100us"}}
    numa = [{"memory": "100Tb/s"}]
    least = {}
    for latency_us in (0, 5):
        staging = {"chunk": CHUNK, "latency": f"{latency_us}us"}
        result = run(gpu(numa=numa, gpudirect="never", staging=staging), item)
        least[latency_us] = result.traffic["workloads"][0].records["completion_ps"]
    assert ((least[5] - least[0]) == 5 * 10**6).all()


def test_steps_of_a_collective_wait_for_copies() -> None:
    item = {"collective": "alltoall", "sizes": [2 * CHUNK], "data": "lengths"}
    numa = [{"memory": "100Tb/s"}]
    times = {}
    for latency_us in (0, 5):
        staging = {"chunk": CHUNK, "latency": f"{latency_us}us"}
        result = run(gpu(numa=numa, gpudirect="never", staging=staging), item)
        times[latency_us] = result.traffic["collectives"][0].time_ps
    direct = run(gpu(numa=numa), item).traffic["collectives"][0].time_ps
    # One step of a message of a chunk: copied at either end.
    assert times[5] - times[0] == 2 * 5 * 10**6
    copies_ps = 2 * CHUNK * 8 * PS_PER_S / PcieLink(5, 16).rate_bps(256)
    # Without copies it ends with the last acknowledgement, a way after the last arrival.
    assert copies_ps - 10**6 < times[0] - direct < copies_ps


SHARED = {
    "numa": [{}],
    "switches": [{"name": "sw", "at": "numa0", "pcie": "4x8"}],
    "accelerators": [{"at": "numa0"}, {"at": "numa0"}],
    "nics": [{"at": "sw"}, {"at": "sw"}],
    "gpudirect": "SYS",
}


def test_two_ranks_behind_one_uplink_get_half_each(tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text("source,destination,size,start\n0,2,1MiB,0ns\n1,3,1MiB,0ns\n")
    result = run(SHARED, {"flow_list": str(tmp_path / "flows.csv"), "format": "flow_csv"}, ranks_per_host=2)
    least_ps = 2 * MIB * 8 * PS_PER_S / SLOT_BPS
    [flows] = result.traffic["flows"]
    assert 0.97 * least_ps < flows.least_completion_ps <= flows.largest_completion_ps < 1.05 * least_ps
    assert by_link(result)["numa0->sw"].busiest_host == "h0"


def test_the_number_of_workers_changes_nothing() -> None:
    tree = {
        "clock": "virtual",
        "fabric": {**FABRIC, "leaves": 4, "ranks_per_host": 2},
        "host": SHARED,
        "traffic": [{"collective": "alltoall", "sizes": ["64K"]}],
    }
    one, two = (run_scenario(parse_scenario({**tree, "workers": workers})) for workers in (1, 2))
    assert one.host_links == two.host_links != []
    assert one.traffic == two.traffic


@pytest.mark.parametrize("fidelity", [{"segment": "64KiB"}, {"fast_forward": "1%"}])
def test_shortcuts_do_not_go_with_it(fidelity: dict[str, str]) -> None:
    tree = {"clock": "virtual", "int": False, "fabric": FABRIC, "host": gpu(), "fidelity": fidelity}
    with pytest.raises(BadInputError, match="host"):
        run_scenario(parse_scenario({**tree, "traffic": [{"collective": "allreduce", "sizes": ["64K"]}]}))
