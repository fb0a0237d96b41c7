"""A host's requests to a service of switches: one run of them, carried out natively."""

from __future__ import annotations

from weft.engine import _core
from weft.engine.records import RunStatus
from weft.traffic.answers import Memory, ServiceRecords
from weft.traffic.commands.runs import Start
from weft.traffic.commands.services import PrepareService, ServicePart, ServiceRequests
from weft.traffic.host import Host


class HostService:
    """The requests of one run."""

    def __init__(self, host: Host, command: PrepareService) -> None:
        self._host = host
        self._run = command.run
        self._client = _make_client(host, command.part, command.requests)

    def memory(self) -> Memory:
        """Return nothing: peers write nowhere."""
        return {}

    def start(self, command: Start) -> None:
        """Send the first request at the run's time. Raises RuntimeError the second time."""
        self._client.start(command.start_ps)

    def status(self) -> RunStatus | None:
        """Return the state; nodes are requests."""
        return self._client.status()

    def records(self) -> ServiceRecords:
        """Return columns of all requests."""
        columns = self._client.records()
        return ServiceRecords(
            run=self._run,
            started_ps=tuple(columns["started_ps"].tolist()),
            finished_ps=tuple(columns["finished_ps"].tolist()),
            value=tuple(columns["value"].tolist()),
            attempts=tuple(columns["attempts"].tolist()),
        )

    def release(self) -> None:
        """End the run if it has not ended, and leave the group."""
        self._client.cancel()
        self._host.remove_client(self._client)


def _make_client(host: Host, part: ServicePart, asked: ServiceRequests) -> _core.ServiceClient:
    """Return a client of a service, by the NIC of the group's plane. Raises ValueError for values out of range."""
    plane = host.plane(part.nic)
    return _core.ServiceClient(
        host.nic,
        plane.port,
        host.executor,
        operation=asked.operation,
        requests=asked.requests,
        cells=asked.cells,
        window=asked.window,
        addend=asked.addend,
        group_id=part.group_id,
        epoch=part.epoch,
        q_key=part.q_key,
        member=part.rank if asked.operation == "barrier" else part.client,
        destination_mac=part.service_mac,
        destination_ip=part.service_address,
        group_ip=part.group_address,
        retransmission_timeout_ps=host.transport.least_timeout_ps(plane.config),
    )
