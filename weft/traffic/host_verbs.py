"""Serves `weft.rdma` on a host: its NIC, and queue pairs with the host's transport settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from weft.engine import CompletionQueue
from weft.rdma.errors import VerbsError
from weft.traffic.commands.connections import Connection, PlaneAddress
from weft.traffic.ev_profiles import EvProfile
from weft.traffic.host import Host
from weft.traffic.transports.kind import QueuePair

if TYPE_CHECKING:
    from weft.engine._core import WritingQueuePair
    from weft.rdma.connecting import ConnectionSettings, Endpoint

LABEL = "rdma"


class HostVerbs:
    """A `weft.rdma.device.DevicePort`. `ranks` are the hosts' ranks by name; with `telemetry` data carries INT."""

    def __init__(self, host: Host, ranks: Mapping[str, int], telemetry: bool, ip_version: int) -> None:
        self.nic = host.nic
        self.port_count = len(host.config.nics)
        self.completions = CompletionQueue(host.engine)
        self._kind = host.config.transport.kind
        self.transport, self.operations = self._kind.title, self._kind.operations
        self.largest_send_bytes = None if self._kind.is_reliable else host.config.mtu_bytes
        self._host, self._ranks, self._telemetry = host, ranks, telemetry
        self._ip_version = ip_version

    def address(self, port_num: int) -> str:
        """See DevicePort. Raises ValueError if the port has none of the IP version."""
        config = self._host.plane(port_num - 1).config
        address = config.ipv6 if self._ip_version == 6 else config.ipv4
        if address is None:
            raise ValueError(f"{self._host.config.name} has no IPv6 address on plane {port_num - 1}")
        return address

    def more_addresses(self, port_num: int) -> dict[int, str]:
        """See DevicePort. Raises ValueError as `address` does."""
        if not self._kind.spans_planes:
            return {}
        others = (each for each in range(1, self.port_count + 1) if each != port_num)
        return {each: self.address(each) for each in others}

    def line_rate_bps(self, port_num: int) -> int:
        """See DevicePort."""
        return self._host.plane(port_num - 1).config.rate_bps

    def open_queue_pair(
        self, qp_num: int, port_num: int, peer: str, psn: int, remote: Endpoint, settings: ConnectionSettings
    ) -> WritingQueuePair:
        """See DevicePort."""
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
            more_planes=tuple(
                PlaneAddress(number - 1, address)
                for number, address in remote.more_addresses
                if number <= self.port_count  # what both have
            ),
        )
        return self._host.open_queue_pair(
            connection,
            self.completions,
            self._ev_profile(settings.ev_profile_id),
            retry_limit=settings.retry_count,
            rnr_retry_limit=settings.rnr_retry_count,
            rnr_timer_code=settings.min_rnr_timer,
            receive_for_immediate=True,
        )

    def _ev_profile(self, number: int | None) -> EvProfile | None:
        """Return a profile that is online, for None the assigned one. Raises VerbsError if it is not."""
        if number is None:
            return self._host.ev_profile
        try:
            return self._host.operated_evs().profiles.online(number)
        except ValueError as error:
            raise VerbsError(str(error)) from None

    def close_queue_pair(self, queue_pair: WritingQueuePair) -> None:
        """See DevicePort."""
        self._host.close_queue_pair(cast(QueuePair, queue_pair))
