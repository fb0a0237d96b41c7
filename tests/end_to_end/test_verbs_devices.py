"""RDMA devices in the hosts of a lab: programs of the distribution list them, and the machine has none."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from verbs_programs import needs_device, weft_exec
from weft.clocks.real import lab_state
from weft.clocks.real.verbs_devices import VerbsDevices
from weft.run.fabric import Fabric
from weft.verbs.device import guid

needs_ibv = pytest.mark.skipif(shutil.which("ibv_devices") is None, reason="apt install ibverbs-utils")
PORT = "/sys/class/infiniband/weft0/ports/1"


@pytest.fixture(scope="module")
def machine() -> Iterator[dict[str, list[str]]]:
    """Return the machine's own /dev and /sys/class, the same before and after the lab."""
    found = {folder: sorted(os.listdir(folder)) for folder in ("/dev", "/sys/class")}
    yield found
    assert {folder: sorted(os.listdir(folder)) for folder in found} == found


@needs_device
@needs_ibv
def test_a_program_lists_its_hosts_device(machine: object, small_fabric: Fabric) -> None:
    for host in small_fabric.lab.fabric.hosts:
        expected = guid(host.nics[0].mac).replace(":", "")
        node = small_fabric.lab.network.net.get(host.name)
        for printed in (
            weft_exec(host.name, "ibv_devices").stdout,
            node.cmd("ibv_devices"),
            small_fabric.lab.network.popen(host.name, ["ibv_devices"]).communicate()[0],
        ):
            assert [line.split() for line in printed.splitlines()[2:] if line.strip()] == [["weft0", expected]]
    assert "weft0" not in subprocess.run(["ibv_devices"], capture_output=True, text=True, check=False).stdout


@needs_device
def test_the_machines_own_folders_stay(machine: dict[str, list[str]], small_fabric: Fabric) -> None:
    assert sorted(os.listdir("/dev")) == machine["/dev"]
    inside = weft_exec("h0", "ls /dev; echo; ls /sys/class").stdout.split("\n\n")
    dev, classes = (set(part.split()) for part in inside)
    assert dev == {*machine["/dev"], "infiniband"}
    assert classes == {*machine["/sys/class"], "infiniband", "infiniband_verbs"}


@needs_device
def test_terminals_and_interfaces_work_as_before(machine: object, small_fabric: Fabric) -> None:
    assert weft_exec("h0", f"{sys.executable} -c 'import os; os.openpty()'").returncode == 0
    assert (
        weft_exec("h0", "cat /sys/class/net/h0-eth0/address").stdout.strip()
        == small_fabric.lab.fabric.hosts[0].nics[0].mac
    )
    own, other = pty.openpty()
    with os.fdopen(own), os.fdopen(other) as terminal:
        command = [sys.executable, "-m", "weft", "exec", "h0", "tty <&2"]
        done = subprocess.run(command, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, check=False, timeout=60)
    assert done.stdout.startswith(b"/dev/pts/")
    assert weft_exec("h0", "kill -TERM $$").returncode in (-15, 143)


@needs_device
def test_the_kernels_own_devices_can_be_asked_for(machine: dict[str, list[str]], small_fabric: Fabric) -> None:
    done = weft_exec("--kernel-devices", "h0", "ls /dev; env; hostname")
    assert done.returncode == 0, done.stderr
    assert "libweft" not in done.stdout
    assert ("infiniband" in done.stdout.split()) == ("infiniband" in machine["/dev"])
    assert done.stdout.split()[-1] == "h0"
    classes = weft_exec("--kernel-devices", "h0", "ls /sys/class").stdout.split()
    assert classes == machine["/sys/class"]


@needs_device
def test_counters_are_fresh_while_a_command_runs(machine: object, small_fabric: Fabric) -> None:
    small_fabric.incast("h0", 50_000)
    counted = weft_exec("h0", f"cat {PORT}/counters/port_rcv_packets {PORT}/counters/port_rcv_data").stdout.split()
    traffic = small_fabric.lab.host_metrics()["h0"]["ports"][0]
    packets, words = map(int, counted)
    # Three hosts send 50 kB each in packets of 1024 B or less, with headers of less than 100 B.
    assert 3 * 50_000 // 4 < words < 3 * 60_000 // 4
    assert packets <= traffic["received_packets"]
    assert weft_exec("h0", f"cat {PORT}/hw_counters/lifespan").stdout == "1000\n"


@needs_device
def test_a_host_without_devices_says_why(machine: object, small_fabric: Fabric, tmp_path: Path) -> None:
    state = lab_state.load()
    assert state is not None
    state.verbs_sockets, state.verbs_missing = {}, "because of a test"
    state.save(tmp_path / "lab.json")
    environment = os.environ | {"WEFT_STATE_FILE": str(tmp_path / "lab.json")}
    program = shutil.which("ibv_devices")
    if program is not None:
        assert "h0 has no RDMA device: because of a test" in weft_exec("h0", program, env=environment).stderr
    assert weft_exec("h0", "true", env=environment).stderr == ""


@needs_device
def test_a_lab_goes_on_where_mounts_are_refused(
    machine: object, small_fabric: Fabric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = small_fabric.lab
    monkeypatch.setattr("weft.verbs.places._libc.unshare", lambda flags: -1, raising=False)
    devices = VerbsDevices(lab.fabric, lab.network, tmp_path, lab._access, {})
    assert devices.sockets == {}
    assert "cannot be put into a host" in devices.missing
