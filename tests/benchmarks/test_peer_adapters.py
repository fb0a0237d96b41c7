"""Adapters of other simulators: what they write, what they read, what they refuse.

Topologies, lists of flows and traces are checked by Weft's own readers of these formats, which have tests on files of
the simulators themselves (tests/topologies, tests/jobs/traces). Configurations and outputs follow the simulators'
sources: simulation/scratch/third.cc and run.py of HPCC's simulator, main_uec.cpp and uec.cpp of uet-htsim,
NetworkParser.cpp and Workload.cc of ASTRA-sim.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from peers import PEERS, UnfitWorkError, Work, agreement, measured, slowdowns
from peers.adapters import astra_sim, htsim_uec, ns3_hpcc
from peers.commands import LAUNCHER

from weft import Fabric
from weft.errors import BadInputError
from weft.jobs.traces import read_trace
from weft.run.spec import run_spec
from weft.scenario import parse_scenario
from weft.topologies import FabricSpec
from weft.traffic.jobs import Kind
from weft.traffic.patterns import Flow

HPCC = {
    "int": False,
    "fabric": {"kind": "fat_tree", "k": 4, "planes": 1, "host_rate": "100Gb/s", "fabric_rate": "400Gb/s"},
    "buffer": {"capacity": "32MiB"},
    "pfc": {"classes": [3]},
    "transport": {"congestion_control": "dcqcn", "ack_interval": 1},
}
UEC = {
    "int": False,
    "mtu": 4096,
    "fabric": {"pods": 2, "leaves": 4, "spines": 2, "cores_per_spine": 2, "hosts_per_leaf": 4, "planes": 1},
    "transport": {"protocol": "uet"},
}
SWITCH = {"int": False, "fabric": {"leaves": 1, "spines": 0, "hosts_per_leaf": 4, "planes": 1, "host_rate": "100Gb/s"}}
FLOWS = (Flow(0, 3, 100_000), Flow(2, 3, 1, start_ps=4_000_000), Flow(0, 3, 100_000, start_ps=5_000_000))
ONE_EACH = (Flow(0, 3, 100_000), Flow(1, 3, 7), Flow(3, 0, 5000, start_ps=4_000_000))


def changed(scenario: Mapping[str, Any], section: str, **keys: object) -> dict[str, object]:
    return {**scenario, section: {**scenario.get(section, {}), **keys}}


def work_for(peer: str) -> Work:
    scenario, flows = {"ns3-hpcc": (HPCC, FLOWS), "htsim-uec": (UEC, FLOWS), "astra-sim": (SWITCH, ONE_EACH)}[peer]
    return Work(peer, scenario, flows)


def built(fabric: dict[str, object]) -> FabricSpec:
    tree = {"clock": "virtual", "int": False, "fabric": fabric}
    return run_spec(parse_scenario(tree, units_required=True)).fabric


def links_by_role(fabric: FabricSpec) -> list[tuple[frozenset[str], int, int]]:
    """Return each link's ends, hosts by their numbers and switches by how many hosts they have, its rate and delay."""
    hosts = {host.name: f"host {host.index}" for host in fabric.hosts}
    near = [nic.switch for host in fabric.hosts for nic in host.nics]
    names = hosts | {switch.name: f"switch of {near.count(switch.name)}" for switch in fabric.switches}
    links = [(frozenset(map(names.get, (e.a.node, e.b.node))), e.link.rate_bps, e.link.delay_ps) for e in fabric.links]
    return sorted(links, key=lambda link: (sorted(map(str, link[0])), link[1:]))  # type: ignore[return-value]


def test_ns3_reads_the_fabric_and_the_flows(tmp_path: Path) -> None:
    work = work_for("ns3-hpcc")
    PEERS["ns3-hpcc"].write(work, tmp_path)
    read = built({"kind": "file", "path": str(tmp_path / "topology.txt"), "format": "hpcc"})
    assert links_by_role(read) == links_by_role(work.fabric)
    flows = read_trace(tmp_path / "flows.txt", "hpcc_flows").flows
    base_ps = ns3_hpcc.BASE_S * 10**12
    assert [replace(flow, start_ps=flow.start_ps - base_ps) for flow in flows] == list(work.flows)


def test_ns3_has_the_parameters_of_its_own_script() -> None:
    config = dict(line.split(maxsplit=1) for line in ns3_hpcc.configuration(work_for("ns3-hpcc")).splitlines())
    expected = {  # run.py --cc dcqcn --bw 100; rates in bits a second, thresholds in kB by rate
        "CC_MODE": "1",
        "ALPHA_RESUME_INTERVAL": "1",
        "RATE_DECREASE_INTERVAL": "4",
        "CLAMP_TARGET_RATE": "0",
        "RP_TIMER": "300",
        "EWMA_GAIN": "0.00390625",
        "FAST_RECOVERY_TIMES": "1",
        "RATE_AI": "20000000b/s",
        "RATE_HAI": "200000000b/s",
        "MIN_RATE": "1000000000b/s",
        "HAS_WIN": "0",
        "ACK_HIGH_PRIO": "1",
        "KMIN_MAP": "2 100000000000 400 400000000000 1600",
        "KMAX_MAP": "2 100000000000 1600 400000000000 6400",
        "PMAX_MAP": "2 100000000000 0.2 400000000000 0.2",
        "BUFFER_SIZE": "32",
    }
    assert {key: config[key] for key in expected} == expected
    assert config["PACKET_PAYLOAD_SIZE"] == "1024", "Weft's MTU, and not the 1000 of run.py"
    assert float(config["QLEN_MON_START"]) / 1e9 > float(config["SIMULATOR_STOP_TIME"]) > ns3_hpcc.BASE_S


def test_ns3_has_the_windows_of_hpcc() -> None:
    scenario = {**changed(HPCC, "transport", congestion_control="hpcc"), "int": True}
    config = dict(line.split(maxsplit=1) for line in ns3_hpcc.configuration(Work("x", scenario, FLOWS)).splitlines())
    shown = ("CC_MODE", "U_TARGET", "MI_THRESH", "INT_MULTI", "HAS_WIN", "VAR_WIN", "FAST_REACT")
    assert [config[key] for key in shown] == ["3", "0.95", "0", "4", "1", "1", "1"]
    # A hundredth of the head room of 5 % of 100 Gb/s.
    assert config["RATE_AI"] == "50000000b/s"


@pytest.mark.slow
@pytest.mark.parametrize("control", ["dcqcn", "hpcc"])
def test_peers_get_the_parameters_that_hosts_use(control: str) -> None:
    work = Work("x", {**changed(HPCC, "transport", congestion_control=control), "int": control == "hpcc"}, FLOWS)
    options = work.spec.options
    given = {"int_telemetry": options.int_telemetry, "transport": options.transport}
    with Fabric(work.fabric, clock="virtual", buffer=options.buffer, pfc=options.pfc, **given) as fabric:
        (plane,) = fabric.hosts.transport_in_force(options.int_telemetry).settings["planes"]
    assert dict(work.control_parameters) == plane["parameters"]


def test_ends_of_ns3_are_read_by_hosts_and_ports(tmp_path: Path) -> None:
    # fct.txt: addresses, ports, bytes, start, time, time alone; in the order of the ends.
    lines = [
        "0b000201 0b000301 10000 100 1 2000004000 9000 8000",
        "0b000001 0b000301 10001 100 100000 2000005000 30000 20000",
        "0b000001 0b000301 10000 100 100000 2000000000 40000 20000",
    ]
    (tmp_path / "fct.txt").write_text("\n".join([*lines, ""]))
    end_ps, completion_ps = PEERS["ns3-hpcc"].read(work_for("ns3-hpcc"), tmp_path, "")
    assert completion_ps is not None
    assert (end_ps, completion_ps.tolist()) == (40_000_000, [40_000_000, 9_000_000, 30_000_000])
    (tmp_path / "fct.txt").write_text("\n".join([*lines[:2], ""]))
    with pytest.raises(RuntimeError, match="2 of 3 flows"):
        PEERS["ns3-hpcc"].read(work_for("ns3-hpcc"), tmp_path, "")
    (tmp_path / "fct.txt").write_text("0b000201 0b0\n")
    with pytest.raises(RuntimeError, match="line 1"):
        PEERS["ns3-hpcc"].read(work_for("ns3-hpcc"), tmp_path, "")


def test_hosts_of_ns3_have_the_addresses_of_their_numbers() -> None:
    # node_id_to_ip of third.cc: 0x0b000001 + ((id / 256) * 0x00010000) + ((id % 256) * 0x00000100)
    for number in (0, 1, 255, 256, 319, 65535):
        address = 0x0B000001 + (number // 256 << 16) + (number % 256 << 8)
        assert ns3_hpcc._host(f"{address:08x}") == number


REFUSED_BY_NS3 = {
    "drops": {**HPCC, "pfc": {"classes": []}},
    "memory of each port": {key: value for key, value in HPCC.items() if key != "buffer"},
    "part of a MiB": changed(HPCC, "buffer", capacity="33MB"),
    "delayed acknowledgements": changed(HPCC, "transport", ack_interval=4),
    "swift": changed(HPCC, "transport", congestion_control="swift"),
    "dcqcn that counts bytes": changed(HPCC, "transport", preset="paper-2015", cnp_interval="0"),
    "CNPs at intervals": changed(HPCC, "transport", preset="connectx"),
    "timers of part of a microsecond": changed(HPCC, "transport", parameters={"alpha_timer": "1500ns"}),
    "marks of part of a kB": {**HPCC, "ecn": {"kmin": "400B", "kmax": "800KB", "pmax": 0.2}},
    "two planes": changed(HPCC, "fabric", planes=2),
    "a delay of part of a nanosecond": changed(HPCC, "fabric", delay="1500ps"),
}


@pytest.mark.parametrize("scenario", REFUSED_BY_NS3.values(), ids=REFUSED_BY_NS3)
def test_ns3_refuses_what_it_cannot_be_told(scenario: dict[str, object]) -> None:
    with pytest.raises(UnfitWorkError, match=r"valid: "):
        PEERS["ns3-hpcc"].check(Work("work", scenario, FLOWS))


@pytest.mark.parametrize("name", list(PEERS))
def test_flows_between_the_units_of_a_peers_clock_are_refused(name: str) -> None:
    work = work_for(name)
    PEERS[name].check(work)
    late = replace(work.flows[-1], start_ps=work.flows[-1].start_ps + 500)
    with pytest.raises(UnfitWorkError, match="starts in whole"):
        PEERS[name].check(replace(work, flows=(*work.flows[:-1], late)))


@pytest.mark.parametrize(
    ("name", "other"),
    [("htsim-uec", SWITCH), ("htsim-uec", changed(UEC, "fabric", leaves=3)), ("astra-sim", UEC)],
    ids=["one switch", "oversubscribed by 1.5", "many switches"],
)
def test_fabrics_that_a_peer_lacks_are_refused(name: str, other: dict[str, object]) -> None:
    with pytest.raises(UnfitWorkError, match="no place for"):
        PEERS[name].check(Work("work", other, ONE_EACH))


def test_htsim_reads_the_fat_tree_and_the_flows(tmp_path: Path) -> None:
    work = work_for("htsim-uec")
    arguments = PEERS["htsim-uec"].write(work, tmp_path)
    read = built({"kind": "file", "path": str(tmp_path / "tree.topo"), "format": "htsim_topo"})
    assert links_by_role(read) == links_by_role(work.fabric)
    flows = read_trace(tmp_path / "flows.cm", "htsim_flows").flows
    # htsim_uec takes a start for microseconds (UecSrc::connectPort), Weft's reader for picoseconds.
    assert [replace(flow, start_ps=flow.start_ps * 10**6) for flow in flows] == list(work.flows)
    assert arguments[arguments.index("-mtu") + 1] == "4160"
    assert "-q" not in arguments, "it chooses queues and marks itself"


def test_htsim_is_given_queues_and_marks_in_packets() -> None:
    scenario = {
        **changed(UEC, "fabric", queue_capacity="41600B"),
        "ecn": {"kmin": "8320B", "kmax": "33280B", "pmax": 1},
    }
    peer, work = PEERS["htsim-uec"], Work("work", scenario, FLOWS)
    assert htsim_uec._queues(work) == ["-q", "10", "-ecn", "2", "8"]
    peer.check(work)
    with pytest.raises(UnfitWorkError, match="kmin"):
        peer.check(replace(work, scenario={**scenario, "ecn": {"kmin": "8321B", "kmax": "33280B", "pmax": 1}}))


def test_ends_of_htsim_are_read_by_flow(tmp_path: Path) -> None:
    said = (
        "Starting simulation\n"
        "..|Flow Uec_0_3 flowId 1 uecSrc 0 starting at 0\n"
        "Flow Uec_2_3 flowId 2 uecSrc 1 finished at 13.1 total messages 1 total packets 1 RTS 0\n"
        "Flow Uec_0_3 flowId 3 uecSrc 2 finished at 1.5e+06 total messages 1 total packets 25 RTS 0\n"
        "Flow Uec_0_3 flowId 1 uecSrc 0 finished at 15.25 total messages 1 total packets 25 RTS 0\n"
    )
    end_ps, completion_ps = PEERS["htsim-uec"].read(work_for("htsim-uec"), tmp_path, said)
    assert completion_ps is not None
    assert (end_ps, completion_ps.tolist()) == (1_500_000_000_000, [15_250_000, 9_100_000, 1_499_995_000_000])


def test_astra_sim_reads_a_trace_of_each_host(tmp_path: Path) -> None:
    work = work_for("astra-sim")
    PEERS["astra-sim"].write(work, tmp_path)
    job = read_trace(tmp_path, "chakra").job
    assert job is not None
    assert len(job.parts) == len(work.fabric.hosts) == len(list(tmp_path.glob("flows.*.et")))
    sent = {
        int(part.operations.tag[each]): (rank, part.peers[part.operations.target[each]])
        for rank, part in enumerate(job.parts)
        for each in part.operations.of_kind(Kind.SEND)
    }
    assert sent == {number: (flow.source, flow.destination) for number, flow in enumerate(work.flows)}
    late = job.parts[3].operations
    assert late.duration_ps[late.of_kind(Kind.COMPUTE)].tolist() == [4_000_000]
    network = yaml.safe_load((tmp_path / "network.yml").read_text())
    assert network["topology"] == ["Switch"]
    assert network["bandwidth"][0] * 2**30 * 8 == pytest.approx(100e9), "in units of 2^30 bytes"
    assert json.loads((tmp_path / "system.json").read_text())["trace-enabled"] == 1


def test_ends_of_astra_sim_are_those_of_receives(tmp_path: Path) -> None:
    begin = "[2026-01-01T00:00:00+0000] [D] <workload>: "
    rows = [
        "issue,sys->id=3, tick=0, node->id=1, node->name=flow 0, node->type=6",
        "callback,sys->id=0, tick=9999, node->id=0, node->name=flow 0, node->type=5",
        "callback,sys->id=3, tick=18000, node->id=1, node->name=flow 0, node->type=6",
        "callback,sys->id=3, tick=2001, node->id=2, node->name=flow 1, node->type=6",
        "callback,sys->id=0, tick=6800, node->id=1, node->name=flow 2, node->type=6",
    ]
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "log.log").write_text("".join(f"{begin}{row}\n" for row in rows))
    end_ps, completion_ps = PEERS["astra-sim"].read(work_for("astra-sim"), tmp_path, "")
    assert completion_ps is not None
    assert (end_ps, completion_ps.tolist()) == (18_000_000, [18_000_000, 2_001_000, 2_800_000])


def test_a_host_of_astra_sim_sends_one_flow() -> None:
    with pytest.raises(UnfitWorkError, match="several flows of a host"):
        PEERS["astra-sim"].check(Work("work", SWITCH, (Flow(0, 1, 1), Flow(0, 2, 1))))
    assert astra_sim.job(work_for("astra-sim")).parts[2].peers == ()


def test_flows_are_in_order_of_their_starts() -> None:
    for flows in ((), tuple(reversed(FLOWS))):
        with pytest.raises(ValueError, match="in order of their starts"):
            Work("work", HPCC, flows)
    with pytest.raises(BadInputError, match="fabrik"):
        _ = Work("work", {"fabrik": {}}, FLOWS).spec


def test_a_command_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match=r"not done after 0.2 s"):
        measured(["sh", "-c", "sleep 60; true"], tmp_path, {"PATH": "/usr/bin:/bin"}, 0.2)


def test_memory_is_the_commands_own(tmp_path: Path) -> None:
    held = np.ones(8 * 10**6)  # 64 MB, which a command started from here would be charged
    spent, said = measured(["sh", "-c", "echo done"], tmp_path, {"PATH": "/usr/bin:/bin"}, 60)
    assert said == "done\n"
    assert 0 < spent.peak_bytes < held.nbytes / 2


def test_agreement_of_flows() -> None:
    ideal = np.array([10, 20, 40, 80], np.int64)
    ours, theirs = np.array([10, 40, 40, 320], np.int64), np.array([10, 40, 80, 160], np.int64)
    found = agreement(ours, theirs, ideal)
    assert found.spearman == pytest.approx(np.corrcoef([1, 2.5, 2.5, 4], [1, 2, 3, 4])[0, 1])
    assert found.pearson == pytest.approx(np.corrcoef(np.log(ours), np.log(theirs))[0, 1])
    assert found.pearson_of_slowdowns == pytest.approx(np.corrcoef([0, 1, 0, 2], [0, 1, 1, 1])[0, 1])
    assert (found.median_ratio, found.within_tenth) == (1.0, 0.5)
    assert slowdowns(ours, ideal) == pytest.approx((2.0, 1.5, *np.percentile([1, 2, 1, 4], [95, 99])))
    same = agreement(ideal, ideal, ideal)
    assert (same.pearson, same.spearman) == (pytest.approx(1), pytest.approx(1))
    assert np.isnan(same.pearson_of_slowdowns)


def test_nothing_goes_on_when_nobody_waits(tmp_path: Path) -> None:
    for name in ("alive", "ready", "never"):
        os.mkfifo(tmp_path / name)
    command = ["sh", "-c", "exec 3> alive; echo > ready; read word < never"]
    words = [sys.executable, LAUNCHER, tmp_path / "spent.json", "3600", *command]
    starts = ["sh", "-c", '"$@" & read word < ready', "sh", *words]
    with subprocess.Popen(starts, cwd=tmp_path) as shell, (tmp_path / "alive").open("rb") as alive:
        assert shell.wait() == 0
        assert alive.read() == b"", "the end of the command, which holds it open"
