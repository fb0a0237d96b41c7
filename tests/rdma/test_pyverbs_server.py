"""Lab 21's parameter server on pyverbs: its protocol on a model of pyverbs, its calls on the real one without a device.

The project's tests have no RDMA device.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import fake_pyverbs
import numpy as np
import pytest

from weft.paths import LABS_DIRECTORY

PROGRAM = LABS_DIRECTORY / "21-rdma-programming" / "pyverbs_server.py"
GIDS = {f"rxe_h{n}": f"0000:0000:0000:0000:0000:ffff:0a00:000{n + 1}" for n in range(3)}


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch):
    for name, module in fake_pyverbs.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(fake_pyverbs, "FABRIC", fake_pyverbs.Fabric(dict(GIDS)))
    spec = importlib.util.spec_from_file_location("pyverbs_server_of_lab_21", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.REPETITIONS = 4
    return module


def joined(program, workers: int):
    """Return a server and its workers, connected over socket pairs."""
    server = program.Server(program.Device("rxe_h0", None), workers)
    made = []
    for number in range(1, workers + 1):
        one, other = socket.socketpair()
        with one, other:
            admitting = threading.Thread(target=server.admit, args=(one,))
            admitting.start()
            made.append(program.Worker(program.Device(f"rxe_h{number}", None), other))
            admitting.join()
    return server, made


def test_every_gradient_is_added_once(program, capsys: pytest.CaptureFixture[str]) -> None:
    server, workers = joined(program, 2)
    sums = []
    serving = threading.Thread(target=lambda: sums.append(server.run()), daemon=True)
    serving.start()
    workers[0].measure()
    training = [threading.Thread(target=worker.train, daemon=True) for worker in workers]
    for each in training:
        each.start()
    for each in (*training, serving):
        each.join(120)
    assert sums == [sum(worker.pushed_bytes for worker in workers) // 4]
    # Each size: pushes for the latency, and for the bandwidth with one and with all slots under way.
    assert workers[0].pushed_bytes == 3 * 4 * sum(program.SIZES) + program.STEPS * program.STEP_BYTES
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed[1 : 1 + len(program.SIZES)]] == [f"{size:,}" for size in program.SIZES]


def test_a_pull_finds_the_weights_and_copies_nothing_else(program) -> None:
    server, (worker,) = joined(program, 1)
    server.weights.array[:] = np.arange(program.ELEMENTS, dtype=np.int32)
    worker.pull(4096)
    assert np.array_equal(worker._weights.array[:1024], np.arange(1024))
    assert not worker._weights.array[1024:].any()


def test_a_request_beyond_the_memory_fails_with_words(program) -> None:
    _server, (worker,) = joined(program, 1)
    worker._remote["slots"] = [worker._remote["slots"][0], 64]
    worker.push(64)
    with pytest.raises(program.Failed, match=r"request 1 failed with status 10"):
        worker.progress()


def test_more_pushes_than_slots_are_never_under_way(program) -> None:
    _server, (worker,) = joined(program, 1)  # kept: its memory is what the pushes write
    for _ in range(program.SLOTS):
        worker.push(64)
    with pytest.raises(IndexError):
        worker.push(64)


@pytest.mark.parametrize("line", [b"\n", b"[]\n", b'{"qp": 1}\n', b"\xff\n", b""])
def test_what_is_no_queue_pair_is_refused(program, line: bytes) -> None:
    one, other = socket.socketpair()
    with one, other:
        other.sendall(line)
        other.shutdown(socket.SHUT_WR)
        with pytest.raises(program.Failed, match="which is no queue pair"):
            program.told(one, {})


def test_without_a_device_it_says_where_one_comes_from(program) -> None:
    with pytest.raises(program.Failed, match=r"no RDMA device mlx5_0: run vagrant/soft-roce\.sh --pyverbs"):
        program.Device("mlx5_0", None)


def test_the_gid_is_that_of_the_ipv4_address(program) -> None:
    device = program.Device("rxe_h1", None)
    assert (device.gid_index, device.gid) == (1, GIDS["rxe_h1"])
    assert program.Device("rxe_h1", 0).gid.startswith("fe80")


def test_without_pyverbs_it_says_which_package(tmp_path: Path) -> None:
    (tmp_path / "pyverbs").mkdir()
    (tmp_path / "pyverbs" / "__init__.py").write_text("")
    said = run_program(["serve"], {"PYTHONPATH": str(tmp_path)})
    assert said.returncode == 1
    assert "pyverbs cannot be imported" in said.stderr
    assert "apt install python3-pyverbs" in said.stderr


def test_calls_are_those_of_the_real_pyverbs() -> None:
    e = pytest.importorskip("pyverbs.enums", reason="python3-pyverbs is not installed")
    from pyverbs.addr import GID, AHAttr, GlobalRoute
    from pyverbs.qp import QPAttr, QPCap, QPInitAttr
    from pyverbs.wr import SGE, RecvWR, SendWR

    for name, value in fake_pyverbs.CONSTANTS.items():
        assert getattr(e, name) == value
    QPInitAttr(qp_type=e.IBV_QPT_RC, cap=QPCap(max_send_wr=64, max_recv_wr=32), sq_sig_all=1)
    gid = GID(GIDS["rxe_h0"])
    assert gid.gid == GIDS["rxe_h0"]
    state = QPAttr(port_num=1)
    state.ah_attr = AHAttr(gr=GlobalRoute(dgid=gid, sgid_index=1, hop_limit=64), is_global=1, port_num=1)
    for name in (
        "path_mtu", "dest_qp_num", "rq_psn", "sq_psn", "max_rd_atomic", "max_dest_rd_atomic", "min_rnr_timer",
        "timeout", "retry_cnt", "rnr_retry", "qp_access_flags",
    ):  # fmt: skip
        setattr(state, name, 1)
        assert getattr(state, name) == 1
    part = SGE(4096, 64, 9)
    request = SendWR(
        wr_id=1, opcode=e.IBV_WR_RDMA_WRITE_WITH_IMM, num_sge=1, imm_data=3, sg=[part],
        send_flags=e.IBV_SEND_SIGNALED,
    )  # fmt: skip
    request.set_wr_rdma(5, 4096)
    assert (request.imm_data, request.opcode) == (3, e.IBV_WR_RDMA_WRITE_WITH_IMM)
    RecvWR(num_sge=1, sg=[part])
    said = run_program(["serve", "--device", "no_such"], {})
    assert (said.returncode, said.stderr.count("no RDMA device no_such: run")) == (1, 1)
    assert "--gid-index" in run_program(["work", "--help"], {}).stdout


def run_program(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(PROGRAM), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
