"""Commands for requests to services of switches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from weft.traffic.answers import Prepared, ServiceRecords
from weft.traffic.commands.base import Command
from weft.traffic.messages import Between


@dataclass(frozen=True)
class ServiceRequests:
    """A host's requests to a service of switches; `cells` are used in turn, `window` requests are under way."""

    operation: Literal["barrier", "fetch_and_add", "compare_and_swap"]
    requests: Annotated[int, Between(1)]
    cells: Annotated[int, Between(1)] = 1
    window: Annotated[int, Between(1)] = 1
    addend: Annotated[int, Between(0, (1 << 64) - 1)] = 1


@dataclass(frozen=True)
class ServicePart:
    """A host's part in a group; fields are named as in controller.services.ServiceMembership."""

    nic: int
    group_id: int
    epoch: int
    q_key: int
    rank: int
    client: int
    service_address: str
    service_mac: str
    group_address: str


@dataclass(frozen=True)
class PrepareService(Command[Prepared], name="service"):
    """Make requests to a service ready, as a member of a group."""

    run: int
    part: ServicePart
    requests: ServiceRequests


@dataclass(frozen=True)
class AskServiceRecords(Command[ServiceRecords], name="service_records"):
    """Ask when the requests of a run of `service` began and were answered, and with what."""

    run: int
