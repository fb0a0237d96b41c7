"""In Mininet: one queue pair of MRC over both planes of two hosts, between processes and over real interfaces."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from tests.page_commands.page_commands import all_commands
from weft import topologies
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric
from weft.scenario import TransportSection

pytestmark = pytest.mark.slow
TOPOLOGY = topologies.leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=1, host_rate_bps=10**8)


def test_an_all_reduce_between_processes_uses_both_planes() -> None:
    inputs = [np.random.default_rng(rank).integers(-99, 99, 100_000, np.int32) for rank in range(2)]
    with Fabric(TOPOLOGY, clock="real", int_telemetry=False, transport=TransportSection(protocol="mrc")) as fabric:
        run = fabric.run(CollectiveRequest("allreduce", inputs, "ring"))
        stats = fabric.hosts.stats()
    assert run.result.ok
    for output in run.buffers:
        np.testing.assert_array_equal(output, np.sum(inputs, axis=0))
    for host in stats:
        assert len(host["connections"]) == 1
        sent = [plane["transmit"]["transmitted"]["bytes"] for plane in host["planes"]]
        assert min(sent) > 0.5 * max(sent)


def test_flows_between_processes_use_both_planes() -> None:
    with Fabric(TOPOLOGY, clock="real", int_telemetry=False, transport=TransportSection(protocol="mrc")) as fabric:
        fabric.permutation(400_000)
        fabric.workload("fb_hadoop", 0.5, 20 * 10**9)
        stats = fabric.hosts.stats()
    for host in stats:
        sent = [plane["transmit"]["transmitted"]["bytes"] for plane in host["planes"]]
        assert min(sent) > 0.5 * max(sent)


@pytest.fixture(scope="module")
def kept() -> Iterator[Fabric]:
    transport = TransportSection(protocol="mrc", connections="kept")
    with Fabric(TOPOLOGY, clock="real", int_telemetry=False, transport=transport) as fabric:
        run(fabric)
        yield fabric


def run(fabric: Fabric) -> None:
    inputs = [np.full(50_000, rank, np.int32) for rank in range(2)]
    assert fabric.run(CollectiveRequest("allreduce", inputs, "ring")).result.ok


def controller(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "weft", "controller", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_operator_denies_and_probes_entropy_values_of_running_hosts(kept: Fabric) -> None:
    first, *_ = kept.evs("h0", plane=1)
    value = hex(first["value"])
    assert controller("ev", "deny", "h0", "--value", value).stdout == "denied 1 EV of h0\n"
    before = kept.evs("h0", value=first["value"])[0]
    run(kept)
    assert kept.evs("h0", value=first["value"]) == [before]
    (probed,) = json.loads(controller("ev", "probe", "h0", "--value", value, "--json").stdout)
    assert (probed["peer_host"], probed["state"]) == ("h1", "denied")
    assert probed["round_trip_ps"] > 0
    last = controller("ev", "deny", "h0")
    assert (last.returncode, "would have no EV left" in last.stderr) == (1, True)
    assert controller("ev", "allow", "h0", "--value", value).returncode == 0
    assert kept.evs("h0", value=first["value"])[0]["state"] == "good"


def test_the_pages_commands_about_evs_work(kept: Fabric) -> None:
    beginning = "weft controller ev "
    commands = [each.text for each in all_commands() if each.text.startswith(beginning)]
    assert len(commands) > 5
    for command in commands:
        done = controller("ev", *shlex.split(command.removeprefix(beginning)))
        assert done.returncode == 0, f"{command}: {done.stderr}"


def test_a_nic_tells_its_peer_of_a_carrier_that_is_gone(kept: Fabric) -> None:
    """h0 and h1 have an interface in each plane; the link of h0's first one goes down and comes up."""
    for state, planes in (("down", 1), ("up", 2)):
        confirmed = kept.hosts.stats()[0]["totals"]["port_updates_confirmed"]
        assert controller("link", "h0-p0l0", state).returncode == 0
        for _ in range(1000):
            if kept.hosts.stats()[0]["totals"]["port_updates_confirmed"] > confirmed:
                break
        before = [plane["nic"]["received_packets"] for plane in kept.hosts.stats()[1]["planes"]]
        run(kept)
        after = [plane["nic"]["received_packets"] for plane in kept.hosts.stats()[1]["planes"]]
        assert sum(now > then for now, then in zip(after, before, strict=True)) == planes
