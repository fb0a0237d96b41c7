"""The exercises of p4lang/tutorials in Mininet, with the commands of their READMEs on the hosts."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from tutorial_clone import CLONE, EXERCISES, NEEDS_CLONE

from weft.clocks.real.network_lab import NetworkLab
from weft.paths import SHELL_PYTHON
from weft.run.spec import run_spec
from weft.scenario.network_file import load_scenario_or_network
from weft.scenario.parsing import Change
from weft.shims.writing import MODULES, PROGRAMS, write_shims

pytestmark = [pytest.mark.mininet, NEEDS_CLONE]
SOLUTION_AND_STARTER = pytest.mark.parametrize("solved", [True, False], ids=["solution", "starter"])
_PATIENCE_S = 20.0


class Exercise:
    """An exercise's lab and its hosts, whose commands run in the exercise's folder."""

    def __init__(self, lab: NetworkLab, folder: Path) -> None:
        self._lab = lab
        self.folder = folder

    def on(self, host: str, command: str) -> str:
        """Run a command on a host; return what it prints."""
        return str(self._lab.network.net.get(host).cmd(f"timeout -s KILL {_PATIENCE_S:g} {command}"))

    def iperf(self, client: str, server: str) -> list[str]:
        """Measure as the command of that name at the prompt."""
        net = self._lab.network.net
        return net.iperf([net.get(client), net.get(server)], seconds=1)

    def start(self, host: str, command: str, says: str = "") -> Path:
        """Start a command on a host, and wait until it says something; return the file with its output."""
        output = self.folder / f"{host}-{len(list(self.folder.glob('*.out')))}.out"
        output.touch()  # the shell makes it in its own time
        self._lab.network.net.get(host).cmd(f"timeout -s KILL 60 {command} > {shlex.quote(str(output))} 2>&1 &")
        eventually(lambda: says in output.read_text(encoding="utf-8"))
        return output


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something holds. Raises AssertionError."""
    until = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.05)


@contextmanager
def lab_of(exercise: str, tmp_path: Path, solved: bool = True) -> Iterator[Exercise]:
    folder = tmp_path / "exercises" / exercise
    shutil.copytree(CLONE / exercise, folder)
    changes = [Change("clock", "real", "--clock")]
    solution = folder / "solution" / f"{exercise}.p4"
    if solved and solution.is_file():
        changes.append(Change("p4", str(solution), "--p4"))
    scenario, network = load_scenario_or_network(folder / EXERCISES[exercise], changes)
    assert network is not None
    spec = run_spec(scenario)
    with NetworkLab(spec.fabric, spec.options, network) as lab:
        yield Exercise(lab, folder)


def sniffer(exercise: Exercise, host: str) -> Path:
    return exercise.start(host, "./receive.py", says="sniffing on eth0")


def until_seen(exercise: Exercise, host: str, command: str, seen: Callable[[], bool], times: int = 12) -> None:
    """Send until it is seen: a sniffer says that it begins a moment before it does."""
    for _ in range(times):
        exercise.on(host, command)
        if seen():
            return
    assert seen()


def pings(exercise: Exercise, host: str, address: str) -> bool:
    return " 1 received" in exercise.on(host, f"ping -c 1 -W 1 {address}")


def test_basic(tmp_path: Path) -> None:
    with lab_of("basic", tmp_path) as exercise:
        assert all(pings(exercise, "h1", f"10.0.{number}.{number}") for number in (2, 3, 4))
        came = sniffer(exercise, "h4")
        until_seen(exercise, "h1", './send.py 10.0.4.4 "P4 is cool"', lambda: "P4 is cool" in came.read_text())
        assert re.search(r"ttl += 61", came.read_text())


@pytest.mark.parametrize(("exercise", "address"), [("basic", "10.0.2.2"), ("multicast", "10.0.0.2")])
def test_starters_that_drop_answer_no_ping(exercise: str, address: str, tmp_path: Path) -> None:
    with lab_of(exercise, tmp_path, solved=False) as lab:
        assert not pings(lab, "h1", address)


def test_basic_tunnel(tmp_path: Path) -> None:
    with lab_of("basic_tunnel", tmp_path) as exercise:
        came = sniffer(exercise, "h2")
        send = './send.py 10.0.3.3 "P4 is cool" --dst_id 2'
        until_seen(exercise, "h1", send, lambda: "###[ MyTunnel ]###" in came.read_text())
        assert re.search(r"dst += 10\.0\.3\.3", came.read_text())


@contextmanager
def congested(exercise: Exercise) -> Iterator[Path]:
    """Have h1's probes, one in a second, come to h2 while iperf fills the bottleneck; yield what h2 sees."""
    came = sniffer(exercise, "h2")
    exercise.start("h22", "iperf -s -u", says="Server listening")
    until_seen(exercise, "h1", './send.py 10.0.2.2 "P4 is cool" 1', lambda: "P4 is cool" in came.read_text())
    exercise.start("h11", "iperf -c 10.0.2.22 -t 4 -u", says="connected")
    exercise.on("h1", './send.py 10.0.2.2 "P4 is cool" 3')
    yield came


def test_ecn(tmp_path: Path) -> None:
    with lab_of("ecn", tmp_path) as exercise, congested(exercise) as came:
        eventually(lambda: re.search(r"tos += 0x3", came.read_text()) is not None)
        marks = re.findall(r"tos += 0x(\d)", came.read_text())
        assert marks[0] == "1"
        assert set(marks) == {"1", "3"}


def test_mri(tmp_path: Path) -> None:
    with lab_of("mri", tmp_path) as exercise, congested(exercise) as came:
        found: list[tuple[int, int]] = []

        def depths() -> list[int]:
            hops = re.findall(r"swid += (\d+)\s+\|\s+\|\s+qdepth += (\d+)", came.read_text())
            found[:] = [(int(swid), int(depth)) for swid, depth in hops]
            return [depth for swid, depth in found if swid == 1]

        eventually(lambda: max(depths(), default=0) > 10)
        assert [swid for swid, _ in found] == [2, 1] * (len(found) // 2)
        assert re.search(r"count += 2", came.read_text())


def test_source_routing(tmp_path: Path) -> None:
    with lab_of("source_routing", tmp_path) as exercise:
        came = sniffer(exercise, "h2")
        send = "sh -c \"printf '2 3 2 2 1\\nq\\n' | ./send.py 10.0.2.2\""
        until_seen(exercise, "h1", send, lambda: re.search(r"ttl += 59", came.read_text()) is not None)


@SOLUTION_AND_STARTER
def test_calc(tmp_path: Path, solved: bool) -> None:
    with lab_of("calc", tmp_path, solved) as exercise:
        said = exercise.on("h1", "sh -c \"printf '1+1\\n12^10\\nquit\\n' | python3 calc.py\"")
        answers = ["2", "6"] if solved else ["Didn't receive response"] * 2
        for question, answer in zip([r"1\+1", r"12\^10"], answers, strict=True):
            assert re.search(rf"{question}\s+{answer}\s", said), said


def test_load_balance(tmp_path: Path) -> None:
    with lab_of("load_balance", tmp_path) as exercise:
        both = [sniffer(exercise, host) for host in ("h2", "h3")]
        send = './send.py 10.0.0.1 "P4 is cool"'
        until_seen(exercise, "h1", send, lambda: all("P4 is cool" in each.read_text() for each in both), times=20)


def test_qos(tmp_path: Path) -> None:
    with lab_of("qos", tmp_path) as exercise:
        came = sniffer(exercise, "h2")
        for protocol, mark in (("UDP", "0xb9"), ("TCP", "0xb1")):
            send = f'./send.py --p={protocol} --des=10.0.2.2 --m="P4 is cool" --dur=1'
            until_seen(exercise, "h1", send, partial(_holds, came, mark))


def _holds(output: Path, text: str) -> bool:
    return text in output.read_text()


@SOLUTION_AND_STARTER
def test_firewall(tmp_path: Path, solved: bool) -> None:
    """By `iperf h1 h3` at Mininet's prompt."""
    with lab_of("firewall", tmp_path, solved) as exercise:
        assert all("bits/sec" in rate for rate in exercise.iperf("h1", "h3"))
        assert all("bits/sec" in rate for rate in exercise.iperf("h3", "h1")) is not solved


@SOLUTION_AND_STARTER
def test_link_monitor(tmp_path: Path, solved: bool) -> None:
    with lab_of("link_monitor", tmp_path, solved) as exercise:
        came = exercise.start("h1", "./receive.py")
        exercise.start("h1", "./send.py")
        exercise.start("h4", "iperf -s -u", says="Server listening")
        exercise.on("h1", "iperf -c 10.0.4.4 -u -b 8M -t 5")
        if not solved:
            found = re.findall(r"Switch (\d) - Port (\d): ([\d.]+) Mbps", came.read_text())
            assert {(port, float(mbps)) for _, port, mbps in found} == {("0", 0.0)}
            return
        rates = re.findall(r"Switch 1 - Port 4: ([\d.]+) Mbps", came.read_text())
        idle = re.findall(r"Switch 2 - Port 3: ([\d.]+) Mbps", came.read_text())
        # 1,470 B of data are frames of 1,512 B.
        assert max(map(float, rates)) == pytest.approx(8 * 1512 / 1470, rel=0.1)
        assert max(map(float, idle[1:])) < 0.1


def test_multicast(tmp_path: Path) -> None:
    with lab_of("multicast", tmp_path) as exercise:
        assert pings(exercise, "h1", "10.0.0.2")
        assert pings(exercise, "h1", "10.0.0.3")
        assert not pings(exercise, "h1", "10.0.0.4"), "not in the group that hears ARP"


@contextmanager
def controlled(exercise: Exercise, solved: bool = True, python: Path | None = None) -> Iterator[Path]:
    """Run the exercise's controller beside the lab, by `weft shims`' Python or another; yield its output's file."""
    output = exercise.folder / "controller.out"
    tools = exercise.folder / "tools"
    write_shims(tools)
    script = f"{'solution/' if solved else ''}mycontroller.py"
    with output.open("w") as file:
        process = subprocess.Popen(
            [python or tools / PROGRAMS / "python3", "-u", script],
            cwd=exercise.folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tools / MODULES), str(CLONE.parent / "utils")])},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield output
    finally:
        process.kill()
        process.wait()


@SOLUTION_AND_STARTER
def test_p4runtime(tmp_path: Path, solved: bool) -> None:
    with lab_of("p4runtime", tmp_path) as exercise:
        assert not pings(exercise, "h1", "10.0.2.2")
        with controlled(exercise, solved) as said:
            eventually(lambda: "Reading tunnel counters" in said.read_text())
            tunnels = [("s1", "s2", 100), ("s2", "s1", 200)]
            places = [
                f"{switch} MyIngress.{end}TunnelCounter {number}"
                for first, last, number in tunnels
                for switch, end in ((first, "ingress"), (last, "egress"))
            ]
            if solved:
                eventually(lambda: pings(exercise, "h1", "10.0.2.2"))
                eventually(lambda: all(_counts(said, place) for place in places))
                return
            assert not pings(exercise, "h1", "10.0.2.2")
            eventually(lambda: _counts(said, places[0]))
            assert not any(_counts(said, place) for place in places[1:])


def _counts(said: Path, place: str) -> bool:
    """Whether a tunnel has counted packets."""
    return re.search(rf"{place}: [1-9]", said.read_text()) is not None


@pytest.mark.skipif(not SHELL_PYTHON.exists(), reason="p4runtime-shell, which the controller imports, is not installed")
def test_flowcache(tmp_path: Path) -> None:
    with lab_of("flowcache", tmp_path) as exercise, controlled(exercise, python=SHELL_PYTHON) as said:
        eventually(lambda: pings(exercise, "h1", "10.0.2.2"))
        eventually(lambda: re.search(r"egressPktInCounter 2: [1-9]", said.read_text()) is not None)
        eventually(lambda: "Deleted flow_cache entry on s1" in said.read_text())
