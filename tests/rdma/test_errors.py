"""How requests fail, and what calls refuse: as with verbs."""

from __future__ import annotations

import errno
from typing import Any

import numpy as np
import pytest

import weft
from tests.rdma.ends import EVERYTHING, LOCAL, End, nothing, program, run_pair
from tests.refusals import refused
from weft import rdma
from weft.rdma import enums as e


def failing(fabric: weft.Fabric, request: dict[str, Any], status: rdma.WCStatus, **pair: Any) -> None:
    """Check that a request fails so, and that all after it are flushed."""

    async def client(end: End) -> None:
        opcode = request.get("opcode", e.IBV_WR_RDMA_WRITE)
        before = end.request(e.IBV_WR_RDMA_WRITE, 0, 64, 0, wr_id=1, send_flags=0)
        if request.get("after_one", True):
            end.qp.post_send(before)
        wrong = end.request(opcode, 0, request.get("length", 64), request.get("at", 0), wr_id=2)
        for name, value in request.get("with", {}).items():
            setattr(wrong, name, value)
        end.qp.post_send(wrong)
        end.qp.post_send(end.request(e.IBV_WR_RDMA_WRITE, 0, 64, 0, wr_id=3, send_flags=0))
        found = [(await end.cq.poll())[0] for _ in range(2)]
        assert [(wc.wr_id, wc.status) for wc in found] == [(2, status), (3, e.IBV_WC_WR_FLUSH_ERR)]
        with pytest.raises(rdma.WorkError, match=f"wr_id 2 .*{status.name}"):
            found[0].check()
        assert end.qp.state is e.IBV_QPS_ERR
        end.qp.post_recv(rdma.RecvWR(4))
        end.qp.post_send(end.request(e.IBV_WR_SEND, 0, 64, 0, wr_id=5, send_flags=0))
        flushed = [(await end.cq.poll())[0] for _ in range(2)]
        assert [(wc.wr_id, wc.status) for wc in flushed] == [
            (4, e.IBV_WC_WR_FLUSH_ERR),
            (5, e.IBV_WC_WR_FLUSH_ERR),
        ]

    run_pair(fabric, client, **pair)


def test_a_wrong_rkey_is_a_remote_access_error(fabric: weft.Fabric) -> None:
    failing(fabric, {"with": {"rkey": 0xDEAD}}, e.IBV_WC_REM_ACCESS_ERR)


@pytest.mark.parametrize("at", [(1 << 16) - 63, 1 << 16, 1 << 40])
def test_bytes_beyond_a_region_are_a_remote_access_error(fabric: weft.Fabric, at: int) -> None:
    failing(fabric, {"at": at}, e.IBV_WC_REM_ACCESS_ERR)


@pytest.mark.parametrize(
    ("opcode", "access"),
    [
        (e.IBV_WR_RDMA_WRITE, LOCAL | e.IBV_ACCESS_REMOTE_READ),
        (e.IBV_WR_RDMA_READ, LOCAL | e.IBV_ACCESS_REMOTE_WRITE),
        (e.IBV_WR_ATOMIC_FETCH_AND_ADD, LOCAL | e.IBV_ACCESS_REMOTE_WRITE),
    ],
)
def test_access_that_was_not_granted_is_a_remote_access_error(
    fabric: weft.Fabric, opcode: rdma.WROpcode, access: rdma.AccessFlags
) -> None:
    request = {"opcode": opcode, "length": 8, "after_one": opcode is not e.IBV_WR_RDMA_WRITE}
    if opcode is e.IBV_WR_RDMA_READ or opcode is e.IBV_WR_ATOMIC_FETCH_AND_ADD:
        access |= e.IBV_ACCESS_REMOTE_WRITE
    failing(fabric, request, e.IBV_WC_REM_ACCESS_ERR, of_server={"access": access})


def test_a_misaligned_atomic_is_an_invalid_request(fabric: weft.Fabric) -> None:
    failing(
        fabric,
        {"opcode": e.IBV_WR_ATOMIC_FETCH_AND_ADD, "length": 8, "at": 4},
        e.IBV_WC_REM_INV_REQ_ERR,
    )


@pytest.mark.parametrize("sge", [rdma.SGE(0, 64, 0xDEAD), rdma.SGE((1 << 32) + (1 << 16), 64, 0x100)])
def test_memory_that_is_not_registered_is_a_local_protection_error(fabric: weft.Fabric, sge: rdma.SGE) -> None:
    failing(fabric, {"with": {"sg": [sge]}}, e.IBV_WC_LOC_PROT_ERR)


def test_reading_into_memory_that_may_not_be_written_is_a_local_protection_error(fabric: weft.Fabric) -> None:
    failing(
        fabric,
        {"opcode": e.IBV_WR_RDMA_READ},
        e.IBV_WC_LOC_PROT_ERR,
        memory=np.frombuffer(bytes(1 << 12), np.uint8),
        access=e.IBV_ACCESS_REMOTE_READ,
    )


def test_no_receive_posted_exceeds_the_retries(fabric: weft.Fabric) -> None:
    failing(fabric, {"opcode": e.IBV_WR_SEND}, e.IBV_WC_RNR_RETRY_EXC_ERR, rnr_retry_count=2)


def test_an_immediate_takes_a_receive_too(fabric: weft.Fabric) -> None:
    failing(fabric, {"opcode": e.IBV_WR_RDMA_WRITE_WITH_IMM}, e.IBV_WC_RNR_RETRY_EXC_ERR, rnr_retry_count=1)


def test_a_send_waits_for_a_receive(fabric: weft.Fabric) -> None:
    async def client(end: End) -> None:
        end.memory[:64] = 9
        (await end.do(end.request(e.IBV_WR_SEND, 0, 64, 0))).check()

    async def server(end: End) -> None:
        await end.device.sleep(1_000_000_000)
        end.qp.post_recv(rdma.RecvWR(1, [end.mr.sge(128, 64)]))
        (await end.cq.poll())[0].check()
        assert (end.memory[128:192] == 9).all()

    run_pair(fabric, client, server)


def test_a_peer_that_is_gone_exceeds_the_retries(fabric: weft.Fabric) -> None:
    async def server(end: End) -> None:
        end.qp.close()

    async def client(end: End) -> None:
        await end.device.sleep(1_000_000_000)
        wc = await end.do(end.request(e.IBV_WR_RDMA_WRITE, 0, 64, 0))
        assert wc.status is e.IBV_WC_RETRY_EXC_ERR

    run_pair(fabric, client, server, retry_count=1)


def test_a_send_that_is_too_long_fails_at_both_ends(fabric: weft.Fabric) -> None:
    async def server(end: End) -> None:
        end.qp.post_recv(rdma.RecvWR(1, [end.mr.sge(0, 63)]))
        end.qp.post_recv(rdma.RecvWR(2))
        found = [(await end.cq.poll())[0] for _ in range(2)]
        assert [(wc.wr_id, wc.status) for wc in found] == [
            (1, e.IBV_WC_LOC_LEN_ERR),
            (2, e.IBV_WC_WR_FLUSH_ERR),
        ]
        assert end.qp.state is e.IBV_QPS_ERR

    async def client(end: End) -> None:
        await end.device.sleep(1_000_000)
        wc = await end.do(end.request(e.IBV_WR_SEND, 0, 64, 0))
        assert wc.status is e.IBV_WC_REM_INV_REQ_ERR

    run_pair(fabric, client, server)


def test_putting_a_queue_pair_into_error_flushes_what_is_posted(fabric: weft.Fabric) -> None:
    async def client(end: End) -> None:
        end.qp.post_recv(rdma.RecvWR(1))
        end.qp.post_send(end.request(e.IBV_WR_RDMA_WRITE, 0, 1 << 16, 0, wr_id=2))
        end.qp.to_error()
        found = {wc.wr_id: wc.status for wc in end.cq.poll_now(10)}
        assert found == {1: e.IBV_WC_WR_FLUSH_ERR, 2: e.IBV_WC_WR_FLUSH_ERR}

    run_pair(fabric, client)


def test_unsignaled_requests_keep_their_slots(fabric: weft.Fabric) -> None:
    async def client(end: End) -> None:
        for _ in range(3):
            end.qp.post_send(end.request(e.IBV_WR_RDMA_WRITE, 0, 8, 0, send_flags=0))
        end.qp.post_send(end.request(e.IBV_WR_RDMA_WRITE, 0, 8, 0))
        await end.device.sleep(1_000_000_000)
        with refused(rdma.VerbsError, problem="all 4 slots of the send queue") as raised:
            end.qp.post_send(end.request(e.IBV_WR_RDMA_WRITE, 0, 8, 0))
        assert raised.value.errno == errno.ENOMEM
        assert len(await end.cq.poll(10)) == 1
        (await end.do(end.request(e.IBV_WR_RDMA_WRITE, 0, 8, 0))).check()

    run_pair(fabric, client, cap=rdma.QPCap(4, 4))


def test_a_completion_queue_that_overruns_says_so(fabric: weft.Fabric) -> None:
    async def client(end: End) -> None:
        for _ in range(3):
            end.qp.post_send(end.request(e.IBV_WR_RDMA_WRITE, 0, 8, 0))
        await end.device.sleep(1_000_000_000)
        with refused(rdma.VerbsError, problem="overrun its 2 entries"):
            end.cq.poll_now()

    run_pair(fabric, client, cqe=2)


def test_a_closed_region_is_refused(fabric: weft.Fabric) -> None:
    async def server(end: End) -> None:
        end.mr.close()
        with refused(rdma.VerbsError, problem="closed before"):
            end.mr.close()

    async def client(end: End) -> None:
        await end.device.sleep(1_000_000_000)
        wc = await end.do(end.request(e.IBV_WR_RDMA_WRITE, 0, 8, 0))
        assert wc.status is e.IBV_WC_REM_ACCESS_ERR

    run_pair(fabric, client, server)


def _refusals() -> dict[str, tuple[Any, str]]:
    def posting(**fields: Any) -> Any:
        def call(end: End) -> None:
            request = end.request(e.IBV_WR_RDMA_WRITE, 0, 8, 0)
            for name, value in fields.items():
                setattr(request, name, value)
            end.qp.post_send(request)

        return call

    pair = [rdma.SGE(0, 1, 0), rdma.SGE(0, 1, 0)]
    attributes = rdma.QPInitAttr
    return {
        "opcode": (posting(opcode=99), "opcode 99 .*IBV_WR_SEND"),
        "flags": (posting(send_flags=4), "send_flags 4"),
        "immediate": (posting(imm_data=1 << 32), "imm_data is 4294967296"),
        "sge": (posting(sg=pair), "2 scatter/gather elements"),
        "atomic length": (posting(opcode=e.IBV_WR_ATOMIC_FETCH_AND_ADD, sg=[]), "an atomic of 0 bytes"),
        "remote write alone": (
            lambda end: rdma.MR(end.pd, 8, e.IBV_ACCESS_REMOTE_WRITE),
            "need IBV_ACCESS_LOCAL_WRITE",
        ),
        "empty region": (lambda end: rdma.MR(end.pd, bytearray(), LOCAL), "a memory region of 0 bytes"),
        "read-only region": (lambda end: rdma.MR(end.pd, b"constant", LOCAL), "cannot be registered"),
        "strided region": (
            lambda end: rdma.MR(end.pd, np.zeros((8, 8), np.uint8)[:, ::2], LOCAL),
            "cannot be registered",
        ),
        "no buffer": (lambda end: rdma.MR(end.pd, "text", LOCAL), "cannot be registered"),
        "protection domain": (lambda end: rdma.PD(end.device), "one protection domain"),
        "completion queue": (lambda end: rdma.CQ(end.device, 0), "0 entries"),
        "port": (lambda end: rdma.QP(end.pd, attributes(end.cq, end.cq, port_num=2)), "port_num is 2"),
        "capacity": (
            lambda end: rdma.QP(end.pd, attributes(end.cq, end.cq, rdma.QPCap(0, 1))),
            "max_send_wr is 0",
        ),
        "unconnected": (
            lambda end: rdma.QP(end.pd, attributes(end.cq, end.cq)).post_send(rdma.SendWR()),
            "IBV_QPS_INIT .*connect it first",
        ),
        "receive": (
            lambda end: end.qp.post_recv(rdma.RecvWR(0, [rdma.SGE(0, 8, 1)])),
            "a receive into .* no open region",
        ),
        "peer": (lambda end: end.device.send("h9", "", None), "no other program runs on 'h9' .valid: h0"),
        "value": (lambda end: end.device.send("h0", "", object()), "what JSON can hold"),
        "sleep": (lambda end: end.device.sleep(-1).send(None), "a sleep of -1 ps"),
        "report": (lambda end: end.device.report("x", float("nan")), "a finite number"),
        "huge report": (lambda end: end.device.report("x", 10**400), "a finite number"),
        "poll": (lambda end: end.cq.poll_now(0), "0 completions to poll"),
        "write": (lambda end: end.mr.write(bytes(8), end.mr.length - 7), "of a region of"),
    }


@pytest.mark.parametrize("refusal", _refusals())
def test_calls_that_cannot_be_are_refused_at_once(fabric: weft.Fabric, refusal: str) -> None:
    call, message = _refusals()[refusal]

    async def client(end: End) -> None:
        with pytest.raises(rdma.VerbsError, match=message):
            call(end)

    run_pair(fabric, client)


def test_a_listener_can_reject(fabric: weft.Fabric) -> None:
    async def server(device: rdma.Device) -> None:
        request = await device.listen("test").get_request()
        assert (request.peer, request.private_data["addr"]) == ("h1", 1 << 32)
        request.reject("full")
        with refused(rdma.VerbsError, problem="answered before"):
            request.reject()

    client = program(nothing, "h0")
    with refused(rdma.VerbsError, problem="h0 rejected the connection: full") as raised:
        fabric.rdma({"h0": server, "h1": client})
    assert raised.value.errno == errno.ECONNREFUSED


def test_a_connected_queue_pair_is_not_connected_again(fabric: weft.Fabric) -> None:
    async def client(end: End) -> None:
        with refused(rdma.VerbsError, valid="IBV_QPS_INIT", problem="IBV_QPS_RTS"):
            await end.qp.connect("h0", "test")

    run_pair(fabric, client, access=EVERYTHING)
