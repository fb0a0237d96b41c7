"""Links that a user takes down at Mininet's prompt or with `weft controller link`: the controller notices both."""

import json
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from weft import topologies
from weft.run.fabric import Fabric

TOPOLOGY = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=1)
PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def fabric():
    with Fabric(TOPOLOGY, clock="real") as running:
        yield running


def eventually(holds: Callable[[], bool]) -> None:
    """Wait for what other processes are about to do."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it has not come true"
        time.sleep(0.02)


def controller(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft", "controller", *arguments], capture_output=True, text=True, check=False
    )


def failed(fabric: Fabric) -> set[str]:
    return {"-".join(sorted(end.node for end in link)) for link in fabric.lab.controller.failures.links}


def in_host(fabric: Fabric, *command: str) -> str:
    process = fabric.lab.network.popen("h0", list(command), stdout=subprocess.PIPE)
    return process.communicate()[0]


def test_a_link_taken_down_at_the_prompt_reaches_the_controller_and_health(fabric):
    net = fabric.lab.network.net
    net.configLinkStatus("p0l0", "p0s1", "down")
    eventually(lambda: bool(fabric.lab.link_events.results) and _reprogrammed(fabric, -1))
    assert failed(fabric) == {"p0l0-p0s1"}
    ill = controller("health", "--json")
    assert ill.returncode == 1
    states = {row["switch"]: row["state"] for row in json.loads(ill.stdout)}
    assert states == {
        "p0l0": "its link to p0s1 is down",
        "p0l1": "well",
        "p0s0": "well",
        "p0s1": "its link to p0l0 is down",
    }
    assert fabric.permutation(50_000).bytes_delivered == 100_000
    net.configLinkStatus("p0l0", "p0s1", "up")
    eventually(lambda: len(fabric.lab.link_events.results) == 2 and _reprogrammed(fabric, -1))
    assert failed(fabric) == set()
    assert controller("health").returncode == 0
    assert [(each.link, each.state) for each in fabric.lab.link_events.results] == [
        ("p0l0<->p0s1", "down"),
        ("p0l0<->p0s1", "up"),
    ]


def _reprogrammed(fabric: Fabric, index: int) -> bool:
    return fabric.lab.link_events.results[index].reprogrammed_ps is not None


def test_the_command_takes_links_down_and_up_and_waits_for_the_tables(fabric):
    for name in ("p0l1-p0s0", "p0s0<->p0l1", "h1-p0l1"):
        done = controller("link", name, "down")
        assert done.returncode == 0, done.stderr
        assert "the tables of all switches have followed" in done.stdout
        ends = "-".join(sorted(name.replace("<->", "-").split("-")))
        assert failed(fabric) == {ends}
        assert controller("link", name, "up").returncode == 0
        assert failed(fabric) == set()
    assert fabric.permutation(50_000).bytes_delivered == 100_000
    unknown = controller("link", "p0l1-p0s7", "down")
    assert (unknown.returncode, "p0l1-p0s7" in unknown.stderr) == (3, True)
    unknown = controller("link", "p0l1", "down")
    assert (unknown.returncode, "NODE-NODE" in unknown.stderr) == (3, True)


@pytest.mark.parametrize("by", ["prompt", "host"])
def test_a_host_gets_its_routes_back_with_its_interface(fabric, by):
    def set_link(state: str) -> None:
        if by == "prompt":
            fabric.lab.network.net.configLinkStatus("h0", "p0l0", state)
        else:
            in_host(fabric, "ip", "link", "set", "h0-eth0", state)

    def routes() -> list[str]:
        return [in_host(fabric, "ip", version, "route") for version in ("-4", "-6")]

    before = routes()
    assert "via" in before[0]
    assert "via" in before[1]
    set_link("down")
    eventually(lambda: failed(fabric) == {"h0-p0l0"})
    assert "via" not in routes()[0]
    set_link("up")
    eventually(lambda: failed(fabric) == set())
    eventually(lambda: sorted(routes()[0].splitlines()) == sorted(before[0].splitlines()))
    eventually(lambda: "via" in routes()[1])
    assert "0% packet loss" in in_host(fabric, "ping", "-c", "1", "-W", "10", "10.0.1.1")
    assert "0% packet loss" in in_host(fabric, "ping", "-6", "-c", "1", "-W", "10", "fd00:0:1::1")
