"""An operator of a running lab takes things out of use and back, and asks what the controller saw and did."""

import json
import subprocess
import sys

import pytest

from weft import topologies
from weft.controller.operations_protocol import MOST_REQUEST_BYTES
from weft.run.fabric import Fabric
from weft.scenario import ControllerSection, FlapDampingSection

TOPOLOGY = topologies.leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=1)
MS = 10**9
DAMPING = FlapDampingSection(half_life=10**12, max_suppress=4 * 10**12)


@pytest.fixture(scope="module")
def fabric():
    with Fabric(TOPOLOGY, clock="real", controller=ControllerSection(flap_damping=DAMPING)) as running:
        yield running


def controller(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft", "controller", *arguments], capture_output=True, text=True, check=False
    )


def events() -> list[dict]:
    return json.loads(controller("events", "--json").stdout)


def sent(fabric: Fabric, switch: str) -> int:
    stats = fabric.lab.switch_stats()
    assert stats is not None
    ports = stats["switches"][switch]["ports"].values()
    return sum(port["transmit"]["transmitted"]["packets"] for port in ports)


def test_a_switch_that_is_drained_carries_nothing_until_it_is_restored(fabric):
    done = controller("switch", "drain", "p0s1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("p0s1 is drained, after ")
    assert controller("health").returncode == 0
    before = sent(fabric, "p0s1")
    assert fabric.permutation(50_000).bytes_delivered == 4 * 50_000
    assert sent(fabric, "p0s1") == before
    last = controller("switch", "cordon", "p0s0")
    assert (last.returncode, "would be cut off" in last.stderr) == (1, True)
    assert controller("switch", "restore", "p0s1").returncode == 0
    assert controller("switch", "restore", "p0s1").returncode == 1
    assert controller("health").returncode == 0
    assert [event["kind"] for event in events()] == [
        "draining",
        "programmed",
        "drained",
        "restored",
        "programmed",
    ]
    shown = controller("events", "--last", "2").stdout.splitlines()
    assert len(shown) == 3
    assert "p0s1 is restored" in shown[-1]


def test_hosts_do_not_use_a_plane_that_is_out_of_use(fabric):
    assert controller("plane", "drain", "1").returncode == 0
    assert fabric.permutation(50_000).bytes_delivered == 2 * 50_000
    assert controller("plane", "restore", "1").returncode == 0
    assert fabric.permutation(50_000).bytes_delivered == 4 * 50_000
    unknown = controller("plane", "drain", "2")
    assert (unknown.returncode, "valid: 0 to 1" in unknown.stderr) == (3, True)


def test_a_link_taken_down_again_and_again_stays_out_of_the_routes_until_it_is_restored(fabric):
    for _ in range(3):
        for state in ("down", "up"):
            done = controller("link", "p0l0-p0s1", state)
            assert done.returncode == 0, done.stderr
    assert fabric.lab.operations.damped == ("p0l0<->p0s1",)
    assert "damped" in {event["kind"] for event in events()}
    assert controller("health").returncode == 0
    # Either order is understood.
    assert controller("link", "p0l0-p0s1", "restore").returncode == 0
    assert fabric.lab.operations.damped == ()


@pytest.mark.parametrize("line", [b"", b"[]", b"{", b'{"do": "x"}', b'{"do": "drain", "kind": "host"}', b"\xff"])
def test_requests_that_make_no_sense_are_refused(fabric, line):
    answer = fabric.lab.operations_server.answers.to(line[:MOST_REQUEST_BYTES])
    assert answer["refused"] is False
    assert answer["error"]


def test_without_a_lab_there_is_nobody_to_ask():
    alone = controller("--address", "127.0.0.1:1", "events")
    assert (alone.returncode, "needs a running lab" in alone.stderr) == (4, True)
