"""Commands for clients of a parameter store, and the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from weft.traffic.answers import ParameterRecords, Prepared
from weft.traffic.commands.base import Command
from weft.traffic.messages import Between


@dataclass(frozen=True)
class ParameterPart:
    """A host's part in a group with a parameter store; `client` is its number, None for the store itself."""

    nic: int
    group_id: int
    epoch: int
    q_key: int
    client: int | None
    store_address: str


@dataclass(frozen=True)
class ParameterRequests:
    """Requests of each client to a store: blocks drawn by Zipf's law with this exponent, some of them to push."""

    requests: Annotated[int, Between(1)]
    blocks: Annotated[int, Between(1)]
    window: Annotated[int, Between(1)] = 1
    skew: Annotated[float, Between(0)] = 0.0
    push_share: Annotated[float, Between(0, 1)] = 0.0
    seed: int = 1


@dataclass(frozen=True)
class PrepareParameters(Command[Prepared], name="parameters"):
    """Make a client of a parameter store ready, or the store; `clients` is how many it has."""

    run: int
    part: ParameterPart
    requests: ParameterRequests
    clients: Annotated[int, Between(1)]


@dataclass(frozen=True)
class AskParameterRecords(Command[ParameterRecords], name="parameter_records"):
    """Ask for the requests of a run of `parameters` and their answers, of the store for what it has answered."""

    run: int
