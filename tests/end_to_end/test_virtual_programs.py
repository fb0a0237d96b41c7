"""Unmodified RDMA programs in virtual time: what they measure is what the fabric takes."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence

import pytest

from verbs_programs import needs_device
from weft import topologies
from weft.clocks.exec_commands import HostCommand
from weft.errors import CheckFailedError
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


@pytest.fixture(scope="module")
def fabric() -> Iterator[Fabric]:
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=1)
    with Fabric(topology, clock="virtual", runs_commands=True) as running:
        yield running


def run(fabric: Fabric, *commands: tuple[str, str], timeout_s: float = 100) -> ExecResult:
    return fabric.run_commands([HostCommand(*each) for each in commands], timeout_s=timeout_s)


def printed(result: ExecResult) -> str:
    return "\n".join(f"{each.status} {each.host}: {each.command}\n{each.output}" for each in result.commands)


def need(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed (make setup PARTS=rdma)")


def numbers_after(title: str, result: ExecResult) -> Sequence[float]:
    """Return the numbers of the line below a heading, in the last command's output."""
    lines = result.commands[-1].output.splitlines()
    row = next(place for place, line in enumerate(lines) if line.strip().startswith(title)) + 1
    return [float(each) for each in re.findall(r"[\d.]+", lines[row])]


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_of_programs(name: str, fabric: Fabric) -> None:
    both, of_server, of_client = PAIRS[name]
    need(both.split()[0])
    result = run(fabric, ("h0", f"{both} {of_server}"), ("h1", f"{both} {of_client}"))
    assert result.ok, printed(result)


def test_time_stands_still_while_programs_compute(fabric: Fabric) -> None:
    computes = "python3 -c 'import time; a = time.time_ns(); sum(range(3 * 10**6)); print(time.time_ns() - a)'"
    result = run(fabric, ("h0", computes), ("h1", "date +%s.%N; sleep 1.5; date +%s.%N"))
    assert result.commands[0].output == "0\n"
    before, after = map(float, result.commands[1].output.split())
    assert after - before == pytest.approx(1.5, abs=1e-6)
    assert result.time_ps == 1_500_000_000_000


def test_commands_that_wait_for_ever_are_said(fabric: Fabric) -> None:
    need("ib_write_bw")
    with pytest.raises(CheckFailedError, match="h0: ib_write_bw"):
        run(fabric, ("h0", "ib_write_bw -x 0"), timeout_s=1)
