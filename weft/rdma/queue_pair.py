"""Queue pairs: reliable connections."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from weft.rdma.connecting import ConnectionSettings, Endpoint, connect
from weft.rdma.enums import QPState, SendFlags, WCFlags, WCOpcode, WCStatus, WROpcode
from weft.rdma.errors import VerbsError
from weft.rdma.work import (
    ATOMIC_BYTES,
    NO_FLAGS,
    OPERATIONS,
    SEND,
    SGE,
    TAKES_RECEIVES,
    WC,
    RecvWR,
    SendWR,
    plural,
)
from weft.rdma.work_queues import WorkQueue
from weft.visibility import internal

if TYPE_CHECKING:
    from weft.engine.records import Completion
    from weft.rdma.completion_queue import CQ
    from weft.rdma.memory import MR, PD

MAX_WR = 1 << 14
MAX_SGE = 1
MAX_MESSAGE_BYTES = 1 << 31
_IMMEDIATES = (WROpcode.IBV_WR_RDMA_WRITE_WITH_IMM, WROpcode.IBV_WR_SEND_WITH_IMM)
_ATOMICS = (WROpcode.IBV_WR_ATOMIC_CMP_AND_SWP, WROpcode.IBV_WR_ATOMIC_FETCH_AND_ADD)
_FILLED = (WROpcode.IBV_WR_RDMA_READ, *_ATOMICS)
_COMPLETED_AS = {
    WROpcode.IBV_WR_RDMA_WRITE: WCOpcode.IBV_WC_RDMA_WRITE,
    WROpcode.IBV_WR_RDMA_WRITE_WITH_IMM: WCOpcode.IBV_WC_RDMA_WRITE,
    WROpcode.IBV_WR_SEND: WCOpcode.IBV_WC_SEND,
    WROpcode.IBV_WR_SEND_WITH_IMM: WCOpcode.IBV_WC_SEND,
    WROpcode.IBV_WR_RDMA_READ: WCOpcode.IBV_WC_RDMA_READ,
    WROpcode.IBV_WR_ATOMIC_CMP_AND_SWP: WCOpcode.IBV_WC_COMP_SWAP,
    WROpcode.IBV_WR_ATOMIC_FETCH_AND_ADD: WCOpcode.IBV_WC_FETCH_ADD,
}
_RECEIVED_AS = {"receive": WCOpcode.IBV_WC_RECV, "write_immediate": WCOpcode.IBV_WC_RECV_RDMA_WITH_IMM}
_STATUS = {
    "success": WCStatus.IBV_WC_SUCCESS,
    "local_length_error": WCStatus.IBV_WC_LOC_LEN_ERR,
    "local_protection_error": WCStatus.IBV_WC_LOC_PROT_ERR,
    "remote_invalid_request": WCStatus.IBV_WC_REM_INV_REQ_ERR,
    "remote_access_error": WCStatus.IBV_WC_REM_ACCESS_ERR,
    "remote_operation_error": WCStatus.IBV_WC_REM_OP_ERR,
    "retry_exceeded": WCStatus.IBV_WC_RETRY_EXC_ERR,
    "rnr_retry_exceeded": WCStatus.IBV_WC_RNR_RETRY_EXC_ERR,
    "flushed": WCStatus.IBV_WC_WR_FLUSH_ERR,
}


@dataclass(frozen=True)
class QPCap:
    """How many requests each queue holds."""

    max_send_wr: int = 128
    max_recv_wr: int = 128


@dataclass(frozen=True)
class QPInitAttr:
    """Settings of a new queue pair: completion queues of its send and receive queue, capacities.

    `sq_sig_all`: every request of the send queue is signaled. `port_num` counts from 1: port 1 is in plane 0.
    """

    scq: CQ
    rcq: CQ
    cap: QPCap = field(default_factory=QPCap)
    sq_sig_all: bool = False
    port_num: int = 1


@dataclass(frozen=True)
class _Sent:
    request: SendWR
    length: int
    posted_ps: int


class QP:
    """A reliable connection. It begins in INIT, and `connect` or a listener's `accept` lead it to RTR and RTS.

    Receives can be posted from INIT on, requests of the send queue from RTS on. After the first error it is in ERR, and
    all that is posted completes as flushed.
    """

    def __init__(self, pd: PD, attributes: QPInitAttr) -> None:
        cap = attributes.cap
        for name, number in (("max_send_wr", cap.max_send_wr), ("max_recv_wr", cap.max_recv_wr)):
            if not 1 <= number <= MAX_WR:
                raise VerbsError(f"{name} is {number}", valid=f"1 to {MAX_WR}")
        device = pd.device
        if not 1 <= attributes.port_num <= device.port.port_count:
            raise VerbsError(f"port_num is {attributes.port_num}", valid=f"1 to {device.port.port_count}")
        if {attributes.scq.device, attributes.rcq.device} != {device}:
            raise VerbsError("a queue pair's completion queues belong to another device")
        self.pd, self.device, self.attributes = pd, device, attributes
        self.qp_num = device.take_queue_pair_number()
        self.peer: str | None = None
        """The host at the other end, once it is connected."""
        self._native: Any = None
        self._state = QPState.IBV_QPS_INIT
        self._sends: WorkQueue[_Sent] = WorkQueue("send", cap.max_send_wr)
        self._held: int | None = None  # the number of the first request that the NIC was not given
        self._receives: WorkQueue[RecvWR] = WorkQueue("receive", cap.max_recv_wr)
        self._receives_waiting: list[tuple[int, RecvWR]] = []
        device.add_queue_pair(self)

    @property
    def state(self) -> QPState:
        """Its state now."""
        if self._state is QPState.IBV_QPS_RTS and self._has_failed():
            self._state = QPState.IBV_QPS_ERR
        return self._state

    def _has_failed(self) -> bool:
        stats = self._native.stats()
        return {stats["error"], stats["responder_error"]} != {"success"}

    # --- connecting

    async def connect(
        self,
        peer: str,
        service: str = "",
        private_data: object = None,
        *,
        retry_count: int = 7,
        rnr_retry_count: int = 7,
        min_rnr_timer: int = 4,
        ev_profile_id: int | None = None,
    ) -> Any:
        """Connect to a host that listens for a service; returns the private data of its `accept`.

        Args:
            peer: the host's name.
            service: the name that it gave to `Device.listen`.
            private_data: what JSON can hold, for the listener to read.
            retry_count: timeouts in a row after which requests fail (`retry_cnt`).
            rnr_retry_count: how often the peer may have no receive posted; 7 stands for ever (`rnr_retry`).
            min_rnr_timer: how long the peer is to wait while no receive is posted here; over UET, how long this end
                waits while the peer has none. A code of the InfiniBand specification (table 45), of which 4 is 40 µs.
            ev_profile_id: EV profile of this end, over MRC (docs/mrc.md); None: the one that the host has assigned.

        Raises VerbsError: no such host has a program, it is not in INIT, the EV profile is not online, or the listener
        rejected it (ECONNREFUSED).
        """
        settings = ConnectionSettings(retry_count, rnr_retry_count, min_rnr_timer, ev_profile_id)
        return await connect(self, peer, service, private_data, settings)

    @internal
    def to_rtr(self, peer: str, remote: Endpoint, settings: ConnectionSettings) -> None:
        """Make the NIC's queue pair, connected to the peer's: INIT to RTR."""
        self.require_init()
        if remote.port_num != self.attributes.port_num:
            raise VerbsError(
                f"port {self.attributes.port_num} cannot be connected to port {remote.port_num} of {peer}: ports of "
                "different numbers are in different planes"
            )
        self._native = self.device.open_queue_pair(self, peer, remote, settings)
        self.peer = peer
        self._state = QPState.IBV_QPS_RTR
        waiting, self._receives_waiting = self._receives_waiting, []
        for sequence, request in waiting:
            self._give_receive(sequence, request)

    @internal
    def to_rts(self) -> None:
        """Let the send queue work: RTR to RTS."""
        self._state = QPState.IBV_QPS_RTS

    @internal
    def require_init(self) -> None:
        """Raise VerbsError unless it is in INIT."""
        if self.state is not QPState.IBV_QPS_INIT:
            raise VerbsError(f"queue pair {self.qp_num:#x} is in {self.state.name}", valid="IBV_QPS_INIT")

    def to_error(self) -> None:
        """Put it into ERR (`ibv_modify_qp`): what is posted completes as flushed, the peer gets no answers."""
        self._state = QPState.IBV_QPS_ERR
        if self._native is not None:
            self._native.flush()
            self.device.drain()
        self._flush_held()
        self._receives_waiting.clear()
        while len(self._receives):
            self._complete_receive(WCStatus.IBV_WC_WR_FLUSH_ERR, WCOpcode.IBV_WC_RECV)

    def close(self) -> None:
        """Destroy it; what is still posted is forgotten, as after `ibv_destroy_qp`."""
        if self._state is not QPState.IBV_QPS_RESET:
            self._state = QPState.IBV_QPS_RESET
            self.device.close_queue_pair(self, self._native)
            self._native = None

    # --- posting

    def post_recv(self, request: RecvWR) -> None:
        """Post a receive.

        Raises VerbsError: no slot is free (ENOMEM), its memory may not be written here, or nothing that the fabric's
        transport carries takes one (EOPNOTSUPP).
        """
        if self.state is QPState.IBV_QPS_RESET:
            raise VerbsError(f"queue pair {self.qp_num:#x} is closed")
        if not TAKES_RECEIVES & self.device.port.operations:
            raise self._not_carried(f"a receive: {self.device.port.transport} carries nothing that takes one")
        sge = _only(request.sg)
        if sge is not None and self.pd.local_status(sge, is_written=True) is not WCStatus.IBV_WC_SUCCESS:
            raise VerbsError(f"a receive into {sge}: no open region of that lkey may be written there")
        self._receives.require_room()
        self.device.require_countable()
        sequence = self._receives.post(request)
        if self._state is QPState.IBV_QPS_INIT:
            self._receives_waiting.append((sequence, request))
        elif self._state is QPState.IBV_QPS_ERR:
            self._complete_receive(WCStatus.IBV_WC_WR_FLUSH_ERR, WCOpcode.IBV_WC_RECV)
        else:
            self._give_receive(sequence, request)

    def _give_receive(self, sequence: int, request: RecvWR) -> None:
        memory, offset, length = self._place(_only(request.sg))
        self._native.post_receive(memory, offset, length, work_id=sequence)

    def post_send(self, request: SendWR) -> None:
        """Post a request of the send queue, which runs in order.

        If the memory of this host does not permit it, the completion says so (IBV_WC_LOC_PROT_ERR), not this call.
        Raises VerbsError: it is not in RTS or ERR, no slot is free (ENOMEM), the request is malformed, or the fabric's
        transport carries no such operation (EOPNOTSUPP).
        """
        if self.state not in (QPState.IBV_QPS_RTS, QPState.IBV_QPS_ERR):
            raise VerbsError(
                f"queue pair {self.qp_num:#x} is in {self.state.name}", valid="IBV_QPS_RTS; connect it first"
            )
        length = _checked_length(request)
        self._require_carried(request.opcode, length)
        self._sends.require_room()
        self.device.require_countable()
        sge = _only(request.sg)
        # A copy: the caller may use the same request again.
        sent = _Sent(SendWR(**vars(request)), length, self.device.now_ps)
        sequence = self._sends.post(sent)
        is_permitted = sge is None or (self.pd.local_status(sge, request.opcode in _FILLED) is WCStatus.IBV_WC_SUCCESS)
        if self._state is QPState.IBV_QPS_ERR:
            self._held = sequence if self._held is None else self._held
            self._flush_held()
        elif self._held is not None or not is_permitted:
            self._hold(sequence)
        else:
            self._give_send(sequence, request, sge)

    def _require_carried(self, opcode: WROpcode, length: int) -> None:
        port = self.device.port
        if OPERATIONS[opcode] not in port.operations:
            raise self._not_carried(f"{opcode.name}: {port.transport} carries no {plural(OPERATIONS[opcode])}")
        limit = port.largest_send_bytes
        if limit is not None and OPERATIONS[opcode] == SEND and length > limit:
            raise VerbsError(
                f"{opcode.name}: a datagram of {length} bytes over {port.transport}",
                errno.EINVAL,
                valid=f"0 to {limit}, a packet",
            )

    def _not_carried(self, problem: str) -> VerbsError:
        operations = self.device.port.operations
        valid = (each.name for each, operation in OPERATIONS.items() if operation in operations)
        return VerbsError(problem, errno.EOPNOTSUPP, valid=valid)

    def _hold(self, sequence: int) -> None:
        """Hold back the first request with a local error until all requests before it have completed."""
        if self._held is None:
            self._held = sequence
        self.device.soon(self._fail_if_held)

    def _give_send(self, sequence: int, request: SendWR, sge: SGE | None) -> None:
        native, opcode = self._native, request.opcode
        memory, offset, length = self._place(sge)
        immediate = request.imm_data if opcode in _IMMEDIATES else None
        remote = {"remote_address": request.remote_addr, "rkey": request.rkey, "work_id": sequence}
        if opcode in (WROpcode.IBV_WR_RDMA_WRITE, WROpcode.IBV_WR_RDMA_WRITE_WITH_IMM):
            post = partial(native.post_write, memory, offset, length, immediate=immediate, **remote)
        elif opcode in (WROpcode.IBV_WR_SEND, WROpcode.IBV_WR_SEND_WITH_IMM):
            post = partial(native.post_send, memory, offset, length, immediate=immediate, work_id=sequence)
        elif opcode is WROpcode.IBV_WR_RDMA_READ:
            post = partial(native.post_read, memory, offset, length, **remote)
        elif opcode is WROpcode.IBV_WR_ATOMIC_CMP_AND_SWP:
            numbers = {"compare": request.compare_add, "swap": request.swap}
            post = partial(native.post_compare_swap, memory, offset, **numbers, **remote)
        else:
            post = partial(native.post_fetch_add, memory, offset, add=request.compare_add, **remote)
        post()

    def _place(self, sge: SGE | None) -> tuple[Any, int, int]:
        if sge is None:
            return None, 0, 0
        region: MR | None = self.pd.region(sge.lkey)
        assert region is not None, "checked when it was posted"
        return region.native, sge.addr - region.addr, sge.length

    # --- completing

    @internal
    def on_completion(self, completion: Completion) -> None:
        """Take a completion of the NIC's queue pair."""
        status = _STATUS[completion["status"]]
        if completion["kind"] in _RECEIVED_AS:
            opcode = _RECEIVED_AS[completion["kind"]]
            self._complete_receive(status, opcode, completion)
        else:
            self._complete_send(status, completion["posted_ps"], completion["completed_ps"])
            self._fail_if_held()

    def _complete_send(self, status: WCStatus, posted_ps: int, completed_ps: int) -> None:
        sequence, sent = self._sends.complete()
        request = sent.request
        completion = WC(
            request.wr_id,
            status,
            _COMPLETED_AS[request.opcode],
            sent.length,
            qp_num=self.qp_num,
            posted_ps=posted_ps,
            completed_ps=completed_ps,
        )
        self.device.note_operation(request.opcode.name, completion)
        signaled = request.send_flags & SendFlags.IBV_SEND_SIGNALED
        if signaled or self.attributes.sq_sig_all or status is not WCStatus.IBV_WC_SUCCESS:
            self.attributes.scq.add(completion, self._sends, sequence)

    def _complete_receive(self, status: WCStatus, opcode: WCOpcode, completion: Completion | None = None) -> None:
        found: Mapping[str, Any] = completion or {}
        # Transports that do not keep the order may complete a later receive first.
        sequence, request = self._receives.complete(found.get("work_id"))
        immediate = found.get("immediate")
        wc = WC(
            request.wr_id,
            status,
            opcode,
            found.get("length_bytes", 0),
            immediate or 0,
            NO_FLAGS if immediate is None else WCFlags.IBV_WC_WITH_IMM,
            self.qp_num,
            completed_ps=found.get("completed_ps", self.device.now_ps),
        )
        self.device.note_operation(opcode.name, wc)
        self.attributes.rcq.add(wc, self._receives, sequence)

    def _fail_if_held(self) -> None:
        """Once all requests before the one with a local error have completed, complete that one, and fail."""
        if self._held is None or self._state is QPState.IBV_QPS_RESET:
            return
        if self._sends.next_sequence - len(self._sends) < self._held:
            return
        if self.state is QPState.IBV_QPS_RTS and len(self._sends):
            sent = self._sends.first()
            self._complete_send(WCStatus.IBV_WC_LOC_PROT_ERR, sent.posted_ps, self.device.now_ps)
            self.to_error()
        else:
            self._flush_held()

    def _flush_held(self) -> None:
        if self._held is None:
            return
        while len(self._sends) and self._sends.next_sequence - len(self._sends) >= self._held:
            sent = self._sends.first()
            self._complete_send(WCStatus.IBV_WC_WR_FLUSH_ERR, sent.posted_ps, self.device.now_ps)


def _only(sg: Any) -> SGE | None:
    """Return the one scatter/gather element, None for none. Raises VerbsError for more."""
    if len(sg) > MAX_SGE:
        raise VerbsError(f"{len(sg)} scatter/gather elements", errno.EINVAL, valid=f"up to {MAX_SGE}")
    for sge in sg:
        if sge.length < 0 or sge.length > MAX_MESSAGE_BYTES:
            raise VerbsError(f"a message of {sge.length} bytes", valid=f"0 to {MAX_MESSAGE_BYTES}")
        return sge  # type: ignore[no-any-return]
    return None


def _checked_length(request: SendWR) -> int:
    """Return the bytes of a request. Raises VerbsError for one that is malformed."""
    if not isinstance(request.opcode, WROpcode):
        raise VerbsError(f"opcode {request.opcode!r}", valid=(each.name for each in WROpcode))
    if int(request.send_flags) & ~int(SendFlags.IBV_SEND_SIGNALED):
        raise VerbsError(f"send_flags {int(request.send_flags)}", valid="0, IBV_SEND_SIGNALED")
    if not 0 <= request.imm_data < 1 << 32:
        raise VerbsError(f"imm_data is {request.imm_data}", valid=f"0 to {2**32 - 1}")
    if not 0 <= request.remote_addr < 1 << 64 or not 0 <= request.rkey < 1 << 32:
        raise VerbsError(f"remote address {request.remote_addr}, rkey {request.rkey}", valid="64 and 32 bits")
    sge = _only(request.sg)
    length = 0 if sge is None else sge.length
    if request.opcode in _ATOMICS:
        if length != ATOMIC_BYTES:
            raise VerbsError(f"an atomic of {length} bytes", valid=f"{ATOMIC_BYTES}")
        if not (0 <= request.compare_add < 1 << 64 and 0 <= request.swap < 1 << 64):
            raise VerbsError(f"compare_add {request.compare_add}, swap {request.swap}", valid="64 bits")
    return length
