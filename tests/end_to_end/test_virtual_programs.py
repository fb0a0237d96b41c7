"""Unmodified RDMA programs in virtual time: what they measure is what the fabric takes."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from verbs_programs import needs_device
from weft import topologies
from weft.clocks.exec_commands import HostCommand
from weft.errors import BadInputError, CheckFailedError
from weft.paths import EXAMPLES_DIRECTORY
from weft.results.exec import ExecResult
from weft.run.fabric import Fabric

pytestmark = [needs_device, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

PAIRS = {
    "rc": ("ibv_rc_pingpong -c -g 0 -n 8 -s 9000", "", "h0"),
    "rc-events": ("ibv_rc_pingpong -c -e -g 0 -n 8", "", "h0"),
    "uc": ("ibv_uc_pingpong -c -g 0 -n 8", "", "h0"),
    "ud": ("ibv_ud_pingpong -c -g 0 -n 8 -s 1000", "", "h0"),
    "srq": ("ibv_srq_pingpong -c -g 0 -n 8", "", "h0"),
    "srq-events": ("ibv_srq_pingpong -c -e -g 0 -n 8", "", "h0"),
    "rping": ("rping -V -C 3 -a 10.0.0.1", "-s", "-c"),
    "ucmatose": ("ucmatose -c 2 -C 3 -S 3000", "-b 10.0.0.1", "-s 10.0.0.1"),
    "rdma_client": ("env", "rdma_server", "rdma_client -s 10.0.0.1"),
    "rstream": ("rstream -S 4096 -C 20", "", "-s 10.0.0.1"),
    "riostream": ("riostream -S 4096 -C 20", "", "-s 10.0.0.1"),
    "udaddy": ("udaddy -c 2 -C 3 -S 500", "-b 10.0.0.1", "-s 10.0.0.1"),
    "write": ("ib_write_bw -F -x 0 -n 100 -s 5000", "", "h0"),
    "write, 64 queue pairs": ("ib_write_bw -F -x 0 -n 5 -q 64", "", "h0"),
    "write, both ways": ("ib_write_bw -F -x 0 -n 100 -b", "", "h0"),
    "write, through cm": ("ib_write_bw -F -R -n 100 -s 5000", "", "h0"),
    "read": ("ib_read_bw -F -x 0 -n 100", "", "h0"),
    "send": ("ib_send_bw -F -x 0 -n 100", "", "h0"),
    "send, events": ("ib_send_bw -F -x 0 -n 100 -e", "", "h0"),
    "send, shared receives": ("ib_send_bw -F -x 0 -n 20 -q 8 --use-srq", "", "h0"),
    "send, UD": ("ib_send_bw -F -x 0 -n 100 -c UD -s 1024", "", "h0"),
    "atomic": ("ib_atomic_bw -F -x 0 -n 100", "", "h0"),
    "latency of write": ("ib_write_lat -F -x 0 -n 20", "", "h0"),
    "latency of read": ("ib_read_lat -F -x 0 -n 20", "", "h0"),
    "latency of send": ("ib_send_lat -F -x 0 -n 20", "", "h0"),
    "latency of send, events": ("ib_send_lat -F -x 0 -n 20 -e", "", "h0"),
    "latency of atomics": ("ib_atomic_lat -F -x 0 -n 20", "", "h0"),
}


TOPOLOGY = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=1, host_rate_bps=400 * 10**9)
WRITE_OF_4_BYTES = 14 + 20 + 8 + 12 + 16 + 4 + 4
"""Bytes on a link: Ethernet, IPv4, UDP, BTH, RETH, data, ICRC."""
HEADERS = 14 + 20 + 8 + 12 + 4
FIRST_HEADERS = 16
"""A message's first packet has an RETH besides."""
ACKNOWLEDGEMENT = HEADERS + 4


def virtual_fabric() -> Fabric:
    return Fabric(TOPOLOGY, clock="virtual", runs_commands=True)


@pytest.fixture(scope="module")
def fabric() -> Iterator[Fabric]:
    with virtual_fabric() as running:
        yield running


def run(fabric: Fabric, *commands: tuple[str, str], timeout_s: float = 100) -> ExecResult:
    return fabric.run_commands([HostCommand(*each) for each in commands], timeout_s=timeout_s)


def printed(result: ExecResult) -> str:
    return "\n".join(f"{each.status} {each.host}: {each.command}\n{each.output}" for each in result.commands)


def need(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed (make setup PARTS=rdma)")


def numbers_below(heading: str, result: ExecResult) -> Sequence[float]:
    """Return the numbers of the line below a heading, in the last command's output."""
    lines = result.commands[-1].output.splitlines()
    row = next(place for place, line in enumerate(lines) if line.strip().startswith(heading)) + 1
    return [float(each) for each in re.findall(r"[\d.]+", lines[row])]


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_of_programs(name: str, fabric: Fabric) -> None:
    both, of_server, of_client = PAIRS[name]
    need(both.split()[0])
    result = run(fabric, ("h0", f"{both} {of_server}"), ("h1", f"{both} {of_client}"))
    assert result.ok, printed(result)
    assert result.retransmissions == 0


def test_a_write_arrives_after_what_the_links_take(fabric: Fabric) -> None:
    need("ib_write_lat")
    both = "ib_write_lat -F -x 0 -n 20 -s 4"
    result = run(fabric, ("h0", both), ("h1", f"{both} h0"))
    way = [fabric.topology.hosts[0].nics[0].link] * 4  # host, leaf, spine, leaf, host: all links are alike
    taken_ps = sum(link.delay_ps + WRITE_OF_4_BYTES * 8 * 10**12 // link.rate_bps for link in way)
    _, _, least, most, typical, average, deviation, *_ = numbers_below("#bytes #iterations", result)
    assert least == most == typical == average == round(taken_ps / 1e6, 2)
    assert deviation == 0


def test_writes_fill_the_link_but_for_their_headers(fabric: Fabric) -> None:
    need("ib_write_bw")
    both = "ib_write_bw -F -x 0 -n 500 --report_gbits"
    result = run(fabric, ("h0", both), ("h1", f"{both} h0"))
    size, messages, _, average, _ = numbers_below("#bytes     #iterations", result)
    link = fabric.topology.hosts[0].nics[0].link
    packets = size // fabric.options.mtu_bytes
    bits = messages * 8 * (size + packets * HEADERS + FIRST_HEADERS)
    # The last packet goes over three more links, and its acknowledgement over four.
    last_bits = 3 * 8 * (fabric.options.mtu_bytes + HEADERS) + 4 * 8 * ACKNOWLEDGEMENT
    taken_s = (bits + last_bits) / link.rate_bps + 8 * link.delay_ps / 1e12
    assert average == round(messages * size * 8 / taken_s / 1e9, 2)


def test_runs_repeat_themselves() -> None:
    need("ib_send_bw")
    both = "ib_send_bw -F -x 0 -n 200 -q 4 -e"
    tables = []
    for _ in range(2):
        with virtual_fabric() as running:
            result = run(running, ("h0", both), ("h1", f"{both} h0"))
            tables.append((result.time_ps, *numbers_below("#bytes     #iterations", result)))
    assert tables[0] == tables[1]


LOOPS = """
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static volatile long count;
static volatile int flag;
static void* later(void* none) { usleep(1000); flag = 1; return none; }
__attribute__((noinline)) static int is_set(volatile int* at) { return *at; }
int main(int words, char** word) {
  pthread_t thread;
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  if (strcmp(word[1], "counts") != 0 && strcmp(word[1], "saves") != 0) pthread_create(&thread, 0, later, 0);
  if (strcmp(word[1], "counts") == 0) while (count < 30000000) count++;
#ifdef __x86_64__  // only what has been pushed tells one turn of the loop from the next
  long turns = 30000000;
  if (strcmp(word[1], "saves") == 0)
    asm volatile("1: push %0; mov $1, %0; test %0, %0; pop %0; dec %0; jnz 1b" : "+r"(turns) : : "cc", "memory");
#endif
  if (strcmp(word[1], "looks") == 0) while (!flag);
  if (strcmp(word[1], "calls") == 0) while (!is_set(&flag));
  if (strcmp(word[1], "pauses") == 0) while (!flag) __builtin_ia32_pause();
  if (strcmp(word[1], "yields") == 0) while (!flag) sched_yield();
  clock_gettime(CLOCK_MONOTONIC, &end);
  printf("%s %ld\\n", word[1], (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec);
  return words != 2;
}
"""


@pytest.mark.parametrize("optimised", ["-O0", "-O2"])
def test_loops_that_look_at_memory_wait_and_those_that_compute_take_no_time(
    optimised: str, fabric: Fabric, tmp_path: Path
) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no compiler (apt install gcc)")
    source, program = tmp_path / "loops.c", tmp_path / "loops"
    source.write_text(LOOPS)
    subprocess.run([compiler, optimised, "-pthread", str(source), "-o", str(program)], check=True)
    names = ["counts", "saves", "looks", "calls", "pauses", "yields"]
    result = run(fabric, ("h0", f"for each in {' '.join(names)}; do {program} $each; done"))
    taken_ns = dict(line.split() for line in result.commands[0].output.splitlines())
    computes = {"counts", "saves"}
    assert taken_ns == {name: "0" if name in computes else "1000000" for name in names}, printed(result)


def test_time_stands_still_while_programs_compute(fabric: Fabric) -> None:
    computes = "python3 -c 'import time; a = time.time_ns(); sum(range(3 * 10**6)); print(time.time_ns() - a)'"
    result = run(fabric, ("h0", computes), ("h1", "date +%s.%N; sleep 1.5; date +%s.%N"))
    assert result.commands[0].output == "0\n"
    before, after = map(float, result.commands[1].output.split())
    assert after - before == pytest.approx(1.5, abs=1e-6)


TIMES = """
import select, signal, socket, threading, time
begin = time.monotonic()
def passed(): return round(time.monotonic() - begin, 6)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.25)
signal.pause()
a, b = socket.socketpair()
times = [passed()]
select.select([a], [], [], 0.5); times.append(passed())
event = threading.Event()
event.wait(0.125); times.append(passed())
threading.Timer(0.5, lambda: b.send(b"x")).start()
a.recv(1); times.append(passed())
while passed() < 2: pass
times.append(passed())
print(times)
"""


def test_alarms_timeouts_and_threads_live_in_the_runs_time(fabric: Fabric, tmp_path: Path) -> None:
    (tmp_path / "times.py").write_text(TIMES)
    result = run(fabric, ("h0", f"python3 {tmp_path}/times.py"))
    found = ast.literal_eval(result.commands[0].output)
    assert found == pytest.approx([0.25, 0.75, 0.875, 1.375, 2.0], abs=1e-5), printed(result)


def test_calls_that_live_by_the_wall_clock_are_said(fabric: Fabric) -> None:
    line = "import socket; a, b = socket.socketpair(); a.setsockopt(1, 20, bytes(8) + bytes([1]) + bytes(7))"
    result = run(fabric, ("h0", f"python3 -c '{line}'"))
    assert result.commands[0].wall_clock_uses == ["SO_RCVTIMEO or SO_SNDTIMEO"]


def test_a_command_that_fails_fails_the_run(fabric: Fabric) -> None:
    result = run(fabric, ("h0", "echo before; exit 3"), ("h1", "kill -9 $$"))
    assert [each.status for each in result.commands] == [3, -9]
    assert result.commands[0].output == "before\n"
    assert not result.ok


def test_commands_that_wait_for_ever_are_said(fabric: Fabric) -> None:
    need("ib_write_bw")
    with pytest.raises(CheckFailedError, match="cannot happen: h0: ib_write_bw"):
        run(fabric, ("h0", "ib_write_bw -x 0"))
    with pytest.raises(CheckFailedError, match="not ended after 2 s: h0: sleep 3 sleeps"):
        run(fabric, ("h0", "sleep 3"), timeout_s=2)


def test_a_run_that_is_killed_leaves_nothing_that_is_not_cleaned(tmp_path: Path) -> None:
    need("ib_write_bw")
    tmp_path /= "longer-than-the-name-of-a-socket-may-be-" * 3
    tmp_path.mkdir()
    scenario = tmp_path / "run.yaml"
    scenario.write_text(
        "{name: killed, clock: virtual, fabric: {planes: 1, leaves: 1, spines: 1},"
        " traffic: [{exec: {h0: 'ib_write_bw -x 0', h1: 'echo begun > begun; while true; do sleep 1; done'}}]}"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    begin = [sys.executable, "-m", "weft"]
    with subprocess.Popen([*begin, "run", str(scenario)], cwd=tmp_path, env=environment) as running:
        while not (tmp_path / "begun").exists() and running.poll() is None:
            os.sched_yield()
        running.kill()
    cleaned = subprocess.run([*begin, "clean"], env=environment, capture_output=True, text=True, check=True).stdout
    assert "removed process" in cleaned
    assert not list(tmp_path.glob("weft-*"))
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            assert str(tmp_path).encode() not in Path("/proc", name, "environ").read_bytes(), name


def test_a_fabric_that_does_not_know_of_commands_refuses_them() -> None:
    with Fabric(TOPOLOGY, clock="virtual") as running, pytest.raises(BadInputError, match="runs_commands"):
        run(running, ("h0", "true"))
    with virtual_fabric() as running, pytest.raises(BadInputError, match="no host 'h7'"):
        run(running, ("h7", "true"))


def test_open_mpi_adds_vectors_over_ucx(fabric: Fabric) -> None:
    need("mpirun")
    need("ucx_perftest")
    if subprocess.run(["/usr/bin/python3", "-c", "import mpi4py, numpy"], check=False, capture_output=True).returncode:
        pytest.skip("mpi4py is not installed (apt install python3-mpi4py)")
    words = [
        "mpirun --allow-run-as-root --host h0,h1 --mca pml ucx -x UCX_TLS=rc,ud,self -x UCX_NET_DEVICES=weft0:1",
        f'--mca plm_rsh_agent "{sys.executable} -m weft exec"',
        f"/usr/bin/python3 {EXAMPLES_DIRECTORY}/mpi_allreduce.py",
    ]
    commands = [HostCommand("h0", " ".join(words))]
    result = fabric.run_commands(commands, more_hosts=["h1"], timeout_s=1000)
    assert "over h0, h1: 0 wrong" in result.commands[0].output, printed(result)


@pytest.mark.parametrize("transports", ["rc_verbs,ud_verbs,self", "ud_verbs,self"])
def test_ucx(transports: str, fabric: Fabric) -> None:
    need("ucx_perftest")
    both = f"UCX_TLS={transports} UCX_NET_DEVICES=weft0:1 ucx_perftest -n 20 -w 2 -t tag_lat -s 64"
    result = run(fabric, ("h0", both), ("h1", f"{both} h0"))
    assert result.ok, printed(result)
