"""However a run ends, it leaves nothing behind."""

import contextlib
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path

import pytest
from scapy.utils import rdpcap

import weft
from weft import topologies
from weft.clocks.real import interfaces as interfaces_of_labs
from weft.clocks.real import lab_state
from weft.system.processes import ProcessId
from weft.traffic.layers import BTH, icrc_is_valid

SCENARIO = """
name: leftovers
fabric: {planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 1}
traffic:
  - {collective: allreduce, algorithms: [ring], dtype: int32, sizes: [4M], repetitions: 100}
"""


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def start(scenario: Path, tmp_path: Path) -> subprocess.Popen:
    """Start `weft run` and return when its collective has begun."""
    process = subprocess.Popen(
        [sys.executable, "-m", "weft", "run", str(scenario), "--out", str(tmp_path / "out")],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert any("all-reduce" in line for line in process.stderr)
    return process


def interfaces() -> set[str]:
    return set(os.listdir("/sys/class/net"))


def wait_until_gone(processes: list[ProcessId], patience_s: float = 20.0) -> None:
    deadline = time.monotonic() + patience_s
    while any(process.alive for process in processes) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [process for process in processes if process.alive]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_cleans_up_by_itself(scenario, tmp_path, number):
    before = interfaces()
    process = start(scenario, tmp_path)
    state = lab_state.load()
    assert interfaces() > before
    process.send_signal(number)
    process.stderr.read()
    assert process.wait(timeout=60) != 0
    wait_until_gone(state.processes)
    assert interfaces() == before
    assert lab_state.load() is None
    assert not any(Path(directory).exists() for directory in state.directories)


@pytest.mark.slow
def test_weft_clean_removes_what_a_killed_run_leaves_and_nothing_else(scenario, tmp_path):
    before = interfaces()
    bystander = "weftbystand0"
    subprocess.run(["ip", "link", "add", bystander, "type", "veth", "peer", "name", "weftbystand1"], check=True)
    try:
        process = start(scenario, tmp_path)
        state = lab_state.load()
        process.kill()
        process.stderr.close()
        process.wait(timeout=60)
        done = subprocess.run([sys.executable, "-m", "weft", "clean"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        wait_until_gone(state.processes)
        assert interfaces() == before | {bystander, "weftbystand1"}
        assert lab_state.load() is None
        assert not any(Path(directory).exists() for directory in state.directories)
        again = subprocess.run([sys.executable, "-m", "weft", "clean"], capture_output=True, text=True, check=False)
        assert again.stdout == "nothing to clean\n"
    finally:
        subprocess.run(["ip", "link", "delete", bystander], check=True)


@contextlib.contextmanager
def existing_interface(name: str):
    """An interface that Weft did not make."""
    subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", "weftbystand1"], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "link", "delete", name], check=True)


def test_a_refused_run_leaves_an_interface_of_its_names_alone(scenario, tmp_path):
    command = [sys.executable, "-m", "weft", "run", str(scenario), "--clock", "real"]
    with existing_interface("p0l0-eth1"):
        before = interfaces()
        done = subprocess.run([*command, "--out", str(tmp_path / "out")], capture_output=True, text=True, check=False)
        assert done.returncode == 4
        assert "p0l0-eth1 exists already" in done.stderr
        assert interfaces() == before


def test_clean_spares_interfaces_that_only_share_a_labs_names(tmp_path):
    """As after a kill at any moment: the group is recorded first, and interfaces may not exist yet."""
    dead = subprocess.Popen(["true"], stdout=subprocess.DEVNULL)
    owner = ProcessId(dead.pid, 1)
    dead.wait()
    group = interfaces_of_labs.new_group()
    made, taken = ("wefttest0", "wefttest1"), "wefttest2"
    macs = ("02:00:00:00:00:01", "02:00:00:00:00:02")
    state = lab_state.LabState(owner, interface_group=group)
    state.save(tmp_path / "lab.json")
    one, other = ((name, mac, os.getpid()) for name, mac in zip(made, macs, strict=True))
    interfaces_of_labs.add_pairs(group, [(one, other)])
    with existing_interface(taken):
        assert lab_state.clean(tmp_path / "lab.json") == [f"interface {name}" for name in made]
        assert not interfaces() & set(made)
        assert taken in interfaces()


@pytest.mark.slow
def test_a_run_whose_switches_die_says_so_and_cleans_up(scenario, tmp_path):
    before = interfaces()
    process = start(scenario, tmp_path)
    state = lab_state.load()
    daemon = next(
        each for each in state.processes if b"weft.switch.daemon" in Path(f"/proc/{each.pid}/cmdline").read_bytes()
    )
    os.kill(daemon.pid, signal.SIGKILL)
    message = process.stderr.read()
    assert process.wait(timeout=120) != 0
    assert "the switch daemon ended with status -9" in message
    assert "Traceback" not in message
    assert interfaces() == before


@pytest.mark.slow
def test_a_second_run_is_refused_while_one_runs(scenario, tmp_path):
    process = start(scenario, tmp_path)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "weft", "run", str(scenario)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 4
        assert f"process {process.pid}" in done.stderr
    finally:
        process.send_signal(signal.SIGINT)
        process.stderr.read()
        process.wait(timeout=60)


def test_results_are_written_as_json(tmp_path):
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        "fabric: {planes: 1, leaves: 1, spines: 0, hosts_per_leaf: 2}\n"
        "traffic:\n"
        "  - {collective: allreduce, algorithms: [ring, in-network], dtype: int32, sizes: [4K]}\n"
        "  - {permutation: 8K}\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "weft", "run", str(scenario), "--json"),
            *("--out", str(tmp_path / "out"), "--pcap", str(tmp_path / "pcap")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed == json.loads((tmp_path / "out" / "results.json").read_text())
    assert [each["algorithm"] for each in printed["collectives"]] == ["ring", "in-network"]
    assert all(each["wrong"] == 0 and each["identical"] for each in printed["collectives"])
    assert printed["flows"][0]["bytes_delivered"] == 2 * 8192
    assert printed["made_by"]["seed"] == 1
    assert {path.name for path in (tmp_path / "pcap").iterdir()} == {"h0-plane0.pcap", "h1-plane0.pcap"}
    packets = rdpcap(str(tmp_path / "pcap" / "h0-plane0.pcap"))
    assert any(BTH in packet for packet in packets)
    assert all(icrc_is_valid(bytes(packet)) for packet in packets if BTH in packet)


TINY = """
fabric: {planes: 1, leaves: 1, spines: 0, hosts_per_leaf: 2}
traffic:
  - {permutation: 8K}
"""


def run_with_capabilities(bounding_set: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run a small lab as in a container that has been given some capabilities only."""
    scenario = tmp_path / "tiny.yaml"
    scenario.write_text(TINY, encoding="utf-8")
    return subprocess.run(
        [
            *("setpriv", "--bounding-set", bounding_set, "--inh-caps", bounding_set),
            *(
                sys.executable,
                "-m",
                "weft",
                "run",
                str(scenario),
                "--clock",
                "real",
                "--out",
                str(tmp_path / "out"),
            ),
        ],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv (util-linux)")
@pytest.mark.parametrize("name", ["SYS_ADMIN", "SYS_CHROOT", "NET_ADMIN", "NET_RAW"])
def test_a_missing_capability_is_reported_by_name(name, tmp_path):
    done = run_with_capabilities(f"-{name.lower()}", tmp_path)
    assert done.returncode == 4
    assert f"lacks the capability {name}:" in done.stderr


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv (util-linux)")
@pytest.mark.slow
def test_the_capabilities_that_the_message_asks_for_are_enough(tmp_path):
    done = run_with_capabilities("-all,+sys_admin,+sys_chroot,+net_admin,+net_raw", tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_lab_that_was_left_is_free_at_once():
    gc.collect()
    gc.disable()
    try:
        topology = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1)
        with weft.Fabric(topology, clock="real") as fabric:
            parts = [weakref.ref(fabric.lab), weakref.ref(fabric.lab.controller)]
        del fabric
        assert [part() for part in parts if part() is not None] == []
    finally:
        gc.enable()
