"""Serves `weft.rdma` on a host: its NIC, and queue pairs with the host's transport settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from weft.engine import CompletionQueue, RcQueuePair
from weft.errors import InvalidValueError
from weft.traffic.commands.connections import Connection
from weft.traffic.host import Host
from weft.traffic.transports.registry import VERBS, carriers_of, lacked_by

if TYPE_CHECKING:
    from weft.rdma.connecting import ConnectionSettings, Endpoint

LABEL = "rdma"


class HostVerbs:
    """A `weft.rdma.device.DevicePort`. `ranks` are the hosts' ranks by name; with `telemetry` data carries INT."""

    def __init__(self, host: Host, ranks: Mapping[str, int], telemetry: bool, ip_version: int) -> None:
        self.nic = host.nic
        self.port_count = len(host.config.nics)
        self.completions = CompletionQueue(host.engine)
        self._host, self._ranks, self._telemetry = host, ranks, telemetry
        self._ip_version = ip_version

    def address(self, port_num: int) -> str:
        """See DevicePort. Raises ValueError if the port has none of the IP version."""
        config = self._host.plane(port_num - 1).config
        address = config.ipv6 if self._ip_version == 6 else config.ipv4
        if address is None:
            raise ValueError(f"{self._host.config.name} has no IPv6 address on plane {port_num - 1}")
        return address

    def line_rate_bps(self, port_num: int) -> int:
        """See DevicePort."""
        return self._host.plane(port_num - 1).config.rate_bps

    def open_queue_pair(
        self, qp_num: int, port_num: int, peer: str, psn: int, remote: Endpoint, settings: ConnectionSettings
    ) -> RcQueuePair:
        """See DevicePort."""
        kind = self._host.config.transport.kind
        if lacked := lacked_by(kind, VERBS):
            raise InvalidValueError(f"{kind.name} does not carry {lacked}, which rdma has", valid=carriers_of(VERBS))
        connection = Connection(
            plane=port_num - 1,
            peer=self._ranks[peer],
            queue_pair=qp_num,
            remote_queue_pair=remote.qp_num,
            destination_ip=remote.address,
            label=LABEL,
            initial_psn=psn,
            remote_initial_psn=remote.psn,
            telemetry=self._telemetry,
        )
        made = self._host.open_queue_pair(
            connection,
            self.completions,
            retry_limit=settings.retry_count,
            rnr_retry_limit=settings.rnr_retry_count,
            rnr_timer_code=settings.min_rnr_timer,
            receive_for_immediate=True,
        )
        return cast("RcQueuePair", made)

    def close_queue_pair(self, queue_pair: RcQueuePair) -> None:
        """See DevicePort."""
        self._host.close_queue_pair(queue_pair)
