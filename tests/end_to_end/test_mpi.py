"""Hosts as programs see them: names of their own, and MPI between them, as docs/mpi.md has it."""

import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from verbs_programs import needs_device
from weft import topologies
from weft.clocks.real.parallel_programs import open_mpi_command, outputs_of
from weft.paths import ROOT
from weft.run.fabric import Fabric

NAMES = ["h0", "h1", "h2", "h3"]
PLANE_0 = "10.0.0.0/16"
needs_mpi = pytest.mark.skipif(
    shutil.which("mpirun") is None or find_spec("mpi4py") is None,
    reason="Open MPI or mpi4py is not installed (apt install openmpi-bin python3-mpi4py)",
)


@pytest.fixture(scope="module")
def fabric():
    topology = topologies.leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=2)
    with Fabric(topology, clock="real", dilation=100) as running:
        yield running


def weft_exec(*arguments, **options):
    command = [sys.executable, "-m", "weft", "exec", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_every_host_has_its_own_name_and_knows_the_others(fabric):
    here = subprocess.run(["hostname"], capture_output=True, text=True, check=True).stdout
    for name in NAMES:
        node = fabric.lab.network.net.get(name)
        assert node.cmd("hostname").strip() == name
        assert fabric.lab.network.popen(name, ["hostname"]).communicate()[0].strip() == name
    looked_up = fabric.lab.network.net.get("h0").cmd("getent hosts h3 h3-eth1 p0s1 ip6-h3")
    assert [line.split()[0] for line in looked_up.splitlines()] == [
        "10.0.1.2", "10.1.1.2", "10.0.255.2", "fd00:0:1::2"
    ]  # fmt: skip
    assert "0% packet loss" in fabric.lab.network.net.get("h0").cmd("ping -c 1 -W 10 h3")
    # None of it affects the machine itself.
    assert subprocess.run(["hostname"], capture_output=True, text=True, check=True).stdout == here
    assert subprocess.run(["getent", "hosts", "h3-eth1"], check=False).returncode != 0


def test_a_command_runs_in_a_host_as_over_ssh(fabric, tmp_path):
    assert weft_exec("h2", "hostname; ip -4 -o addr show dev h2-eth1").stdout.split()[0] == "h2"
    assert weft_exec("h2", "echo", "a", "'b  c'").stdout == "a b  c\n"
    assert weft_exec("h2", "exit", "7").returncode == 7
    assert weft_exec("h3", input="hostname; exit 5\n").stdout == "h3\n"
    assert weft_exec("h1", "cat", str(tmp_path / "missing")).returncode == 1
    unknown = weft_exec("h9", "true")
    assert (unknown.returncode, "unknown host 'h9'" in unknown.stderr) == (3, True)


@needs_mpi
def test_mpi_reduces_between_hosts(fabric):
    agent = f"{sys.executable} -m weft exec"
    command = [
        "mpirun", "--allow-run-as-root", "--host", ",".join(NAMES), "--mca", "plm_rsh_agent", agent,
        "--mca", "btl_tcp_if_include", PLANE_0, "--mca", "oob_tcp_if_include", PLANE_0,
        sys.executable, str(ROOT / "examples" / "mpi_allreduce.py"),
    ]  # fmt: skip
    before = received(fabric)
    output = fabric.lab.network.net.get("h0").cmd(shlex.join(command))
    assert "all-reduce of 262144 B over h0, h1, h2, h3: 0 wrong" in output, output
    # It has crossed the fabric's switches, not the machine's loopback or shared memory.
    assert received(fabric) - before > 2 * 262144


@needs_mpi
@needs_device
@pytest.mark.parametrize("transports", ["rc,self", "ud,self"])
def test_mpi_runs_over_the_hosts_rdma_devices(fabric, transports):
    """UCX may use nothing else: its reliable connections, or its datagrams alone."""
    for program, last_line in (
        ("mpi_allreduce.py", "all-reduce of 262144 B over h0, h1, h2, h3: 0 wrong"),
        ("mpi_sizes.py", "4 ranks, 0 wrong"),
    ):
        before = received(fabric)
        ranks = [
            "env",
            f"UCX_TLS={transports}",
            "UCX_NET_DEVICES=weft0:1",
            sys.executable,
            str(ROOT / "examples" / program),
        ]
        command = open_mpi_command(NAMES, ranks, PLANE_0, {"pml": "ucx", "btl": "self"})
        output = outputs_of(fabric.lab, {"h0": command}, timeout_s=240)["h0"]
        assert last_line in output, output
        assert received(fabric) - before > 262144


def received(fabric):
    ports = fabric.lab.controller.read_counters()["p0l1"].ports
    return sum(port.received.bytes for number, port in ports.items() if number in (1, 2))
