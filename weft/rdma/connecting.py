"""Connecting queue pairs out of band, as rdma_cm does: request, reply, ready to use."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.rdma.errors import VerbsError
from weft.rdma.out_of_band import OutOfBandMessage

if TYPE_CHECKING:
    from weft.rdma.device import Device
    from weft.rdma.queue_pair import QP

CONNECT = "connect/"
_MOST_RETRIES = 7
_MOST_RNR_TIMER = 31


@dataclass(frozen=True)
class ConnectionSettings:
    """See `QP.connect`. Raises VerbsError for numbers out of range."""

    retry_count: int = 7
    rnr_retry_count: int = 7
    min_rnr_timer: int = 4
    ev_profile_id: int | None = None

    def __post_init__(self) -> None:
        limits = {
            "retry_count": _MOST_RETRIES,
            "rnr_retry_count": _MOST_RETRIES,
            "min_rnr_timer": _MOST_RNR_TIMER,
        }
        for name, most in limits.items():
            value = getattr(self, name)
            if not isinstance(value, int) or not 0 <= value <= most:
                raise VerbsError(f"{name} is {value!r}", valid=f"0 to {most}")
        if self.ev_profile_id is not None and not isinstance(self.ev_profile_id, int):
            raise VerbsError(f"ev_profile_id is {self.ev_profile_id!r}", valid="None, or a whole number")


@dataclass(frozen=True)
class Endpoint:
    """One end of a connection, as the other needs to know it.

    `more_addresses`: number and address of each other port that its queue pair uses.
    """

    qp_num: int
    psn: int
    address: str
    port_num: int
    more_addresses: Sequence[tuple[int, str]] = ()

    @classmethod
    def of(cls, qp: QP) -> Endpoint:
        """Return a queue pair as the end of a connection."""
        port_num = qp.attributes.port_num
        device = qp.device
        port = device.port
        more = tuple(port.more_addresses(port_num).items())
        return cls(qp.qp_num, device.initial_psn(qp.qp_num), port.address(port_num), port_num, more)


async def connect(qp: QP, peer: str, service: str, private_data: object, settings: ConnectionSettings) -> Any:
    """See `QP.connect`."""
    qp.require_init()
    device = qp.device
    answer = f"reply/{qp.qp_num}"
    device.send(peer, CONNECT + service, {"end": vars(Endpoint.of(qp)), "private_data": private_data})
    with device.waiting(f"{peer} to accept a connection for {service!r}"):
        reply: Any = (await device.inbox.get(peer, answer)).value
    if "rejected" in reply:
        raise VerbsError(f"{peer} rejected the connection: {reply['rejected']}", errno.ECONNREFUSED)
    qp.to_rtr(peer, Endpoint(**reply["end"]), settings)
    qp.to_rts()
    device.send(peer, f"ready/{reply['end']['qp_num']}", None)
    return reply["private_data"]


class ConnectionRequest:
    """A host that wants to be connected: `peer` is its name, `private_data` what it gave to `QP.connect`."""

    def __init__(self, device: Device, message: OutOfBandMessage) -> None:
        content: Any = message.value
        self.peer = message.source
        self.private_data: Any = content["private_data"]
        self._device = device
        self._end = Endpoint(**content["end"])
        self._is_answered = False

    async def accept(
        self,
        qp: QP,
        private_data: object = None,
        *,
        retry_count: int = 7,
        rnr_retry_count: int = 7,
        min_rnr_timer: int = 4,
        ev_profile_id: int | None = None,
    ) -> None:
        """Connect a queue pair to the one that asks; returns when both are in RTS.

        `QP.connect` returns `private_data` there. For the other arguments and errors see `QP.connect`.
        """
        self._answer()
        device = self._device
        qp.to_rtr(self.peer, self._end, ConnectionSettings(retry_count, rnr_retry_count, min_rnr_timer, ev_profile_id))
        reply = {"end": vars(Endpoint.of(qp)), "private_data": private_data}
        device.send(self.peer, f"reply/{self._end.qp_num}", reply)
        with device.waiting(f"{self.peer} to be ready to use its connection"):
            await device.inbox.get(self.peer, f"ready/{qp.qp_num}")
        qp.to_rts()

    def reject(self, reason: str = "no reason given") -> None:
        """Refuse: `QP.connect` raises VerbsError there."""
        self._answer()
        self._device.send(self.peer, f"reply/{self._end.qp_num}", {"rejected": reason})

    def _answer(self) -> None:
        if self._is_answered:
            raise VerbsError(f"the connection request of {self.peer} was answered before")
        self._is_answered = True


class Listener:
    """Takes connection requests for a service."""

    def __init__(self, device: Device, service: str) -> None:
        self._device, self.service = device, service

    async def get_request(self) -> ConnectionRequest:
        """Wait for the next request, of any host."""
        with self._device.waiting(f"a connection request for {self.service!r}"):
            return ConnectionRequest(self._device, await self._device.inbox.get("", CONNECT + self.service))

    async def accept(self, qp: QP, private_data: object = None, **settings: int) -> ConnectionRequest:
        """Wait for the next request, accept it with a queue pair, and return it."""
        request = await self.get_request()
        await request.accept(qp, private_data, **settings)
        return request
