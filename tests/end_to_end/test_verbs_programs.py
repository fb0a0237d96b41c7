"""Unmodified programs of the distribution's rdma-core on the NICs of a lab: data, connections, events.

What a program checks of its data it has checked when it ends with 0.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from verbs_programs import exec_in, needs_device, server_and_client, weft_exec
from weft.run.fabric import Fabric
from weft.verbs import libraries
from weft.verbs.device import DEVICE

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
    "rdma_client": ("env", "rdma_server", "rdma_client -s {server}"),
    "udaddy": ("udaddy -c 2 -C 3 -S 500", "-b {server}", "-s {server}"),
    "write": ("ib_write_bw -x 0 -n 8 -s 5000", "", "{server}"),
    # libfabric: on connections of librdmacm and on datagrams, each with its layer for reliable datagrams.
    "libfabric-msg": ("fi_pingpong -c -I 3 -p verbs -e msg", "", "{server}"),
    "libfabric-dgram": ("fi_pingpong -c -I 3 -p verbs -e dgram", "", "{server}"),
    "libfabric-rxm": ("fi_pingpong -c -I 3 -p 'verbs;ofi_rxm' -e rdm", "", "{server}"),
    "libfabric-rxd": ("fi_pingpong -c -I 3 -p 'verbs;ofi_rxd' -e rdm", "", "{server}"),
}


# perftest 4.5 connects a second time before its server is sure to listen again, and its client then fails, on adapters,
# too.
_ANEW = {"write-through-cm": ("ib_write_bw -R -n 8 -s 5000", "", "{server}")}
_ATTEMPTS = 8
_RENAMED = b"libibverbs-h.so"
"""As long as libibverbs.so.1, so that it can stand in its place in a program."""


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


def test_libfabric_lists_the_device(small_fabric: Fabric) -> None:
    if shutil.which("fi_info") is None:
        pytest.skip("fi_info is not installed (make setup PARTS=rdma)")
    listed = weft_exec("h0", "fi_info -p verbs")
    assert listed.returncode == 0, listed.stderr
    found = {words[0]: words[1] for words in map(str.split, listed.stdout.splitlines()) if len(words) == 2}
    assert found["domain:"].startswith(DEVICE)
    for kind in ("FI_EP_MSG", "FI_EP_DGRAM", "FI_EP_RDM"):
        assert kind in listed.stdout


def test_a_program_brings_a_libibverbs_of_another_name(small_fabric: Fabric, tmp_path: Path) -> None:
    """As Python wheels do: auditwheel copies libraries and gives them names with a hash."""
    program, library = shutil.which("ibv_rc_pingpong"), libraries.libibverbs()
    if program is None or library is None:
        pytest.skip("ibv_rc_pingpong is not installed (make setup PARTS=rdma)")
    own = tmp_path / _RENAMED.decode()
    for source, copy in ((Path(program), tmp_path / "pingpong"), (library, own)):
        copy.write_bytes(source.read_bytes().replace(library.name.encode(), _RENAMED))
        copy.chmod(0o755)
    address = str(small_fabric.lab.fabric.hosts[0].nics[0].ipv4.ip)
    command = f"env LD_LIBRARY_PATH={tmp_path} {tmp_path}/pingpong -c -e -g 0 -n 8"
    client, server, *printed = server_and_client(command, f"{command} {address}", attempts=10)
    assert (client, server) == (0, 0), printed


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
