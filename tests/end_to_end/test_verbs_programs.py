"""Unmodified programs of the distribution's rdma-core on the NICs of a lab: data, connections, events.

What a program checks of its data it has checked when it ends with 0.
"""

from __future__ import annotations

import shutil
import subprocess

import pytest

from verbs_programs import exec_in, needs_device, server_and_client
from weft.run.fabric import Fabric

pytestmark = needs_device
# Each with what the server has beyond the client, and the client beyond the server; {server} is its address.
_PROGRAMS = {
    "rc": ("ibv_rc_pingpong -c -g 0 -n 8 -s 9000", "", "{server}"),
    "rc-events": ("ibv_rc_pingpong -c -e -g 0 -n 8", "", "{server}"),
    "uc": ("ibv_uc_pingpong -c -g 0 -n 8", "", "{server}"),
    "ud": ("ibv_ud_pingpong -c -g 0 -n 8 -s 1000", "", "{server}"),
    "srq": ("ibv_srq_pingpong -c -g 0 -n 8", "", "{server}"),
    "srq-events": ("ibv_srq_pingpong -c -e -g 0 -n 8", "", "{server}"),
    "rping": ("rping -V -C 3 -a {server}", "-s", "-c"),
    "ucmatose": ("ucmatose -c 2 -C 3 -S 3000", "-b {server}", "-s {server}"),
    "udaddy": ("udaddy -c 2 -C 3 -S 500", "-b {server}", "-s {server}"),
    "write": ("ib_write_bw -x 0 -n 8 -s 5000", "", "{server}"),
}


# perftest 4.5 connects a second time before its server is sure to listen again, and its client then fails, on adapters,
# too.
_ANEW = {"write-through-cm": ("ib_write_bw -R -n 8 -s 5000", "", "{server}")}
_ATTEMPTS = 8


def ended(name: str, fabric: Fabric, attempts: int) -> tuple[int, int | None, str]:
    """Run a pair of programs; returns both exit codes and what they have printed."""
    both, server_words, client_words = (_PROGRAMS | _ANEW)[name]
    if shutil.which(both.split()[0]) is None:
        pytest.skip(f"{both.split()[0]} is not installed (make setup PARTS=rdma)")
    address = str(fabric.lab.fabric.hosts[0].nics[0].ipv4.ip)
    server_line, client_line = (f"{both} {more}".format(server=address) for more in (server_words, client_words))
    client, server, of_client, of_server = server_and_client(server_line, client_line, attempts)
    return client, server, of_client + of_server


@pytest.mark.parametrize("name", _PROGRAMS)
def test_a_pair_of_programs(name: str, small_fabric: Fabric) -> None:
    client, server, printed = ended(name, small_fabric, attempts=10)
    assert (client, server) == (0, 0), printed


@pytest.mark.parametrize("name", _ANEW)
def test_a_pair_of_programs_that_may_miss_each_other(name: str, small_fabric: Fabric) -> None:
    printed = ""
    for _ in range(_ATTEMPTS):
        client, server, printed = ended(name, small_fabric, attempts=2)
        if (client, server) == (0, 0):
            return
    pytest.fail(printed)


def test_a_program_that_dies_leaves_a_nic_that_works(small_fabric: Fabric) -> None:
    address = str(small_fabric.lab.fabric.hosts[0].nics[0].ipv4.ip)
    if shutil.which("ibv_rc_pingpong") is None:
        pytest.skip("ibv_rc_pingpong is not installed (make setup PARTS=rdma)")
    with subprocess.Popen(exec_in("h0", "ibv_rc_pingpong -g 0 -n 1000000")) as server:
        with subprocess.Popen(exec_in("h1", f"sleep 1; exec ibv_rc_pingpong -g 0 -n 1000000 {address}")) as client:
            with pytest.raises(subprocess.TimeoutExpired):
                client.wait(3)
            client.kill()
        server.kill()
    test_a_pair_of_programs("rc", small_fabric)
