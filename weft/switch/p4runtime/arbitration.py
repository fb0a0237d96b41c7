"""Client arbitration (P4Runtime §5): decides which client is primary for a device and role.

Pure logic, from updates to notifications.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from finsy.proto import U128, p4r, rpc_status
from google.protobuf import any_pb2

from weft.switch.p4runtime.errors import (
    ALREADY_EXISTS,
    FAILED_PRECONDITION,
    INVALID_ARGUMENT,
    NOT_FOUND,
    OK,
    PERMISSION_DENIED,
    RESOURCE_EXHAUSTED,
    RequestError,
    choices,
    invalid,
)
from weft.switch.p4runtime.roles import FULL_ACCESS, Role, check_compatible, read_role

MAX_CLIENTS_PER_ROLE = 16
MAX_ROLES = 64
ClientT = TypeVar("ClientT")


@dataclass(slots=True)
class _Role(Generic[ClientT]):
    """`highest` is the highest election id ever seen from a primary.

    `elections` are the election ids of live clients.
    """

    elections: dict[ClientT, int | None] = field(default_factory=dict)
    highest: int | None = None
    primary: ClientT | None = None
    config: any_pb2.Any | None = None
    """The latest primary's config; None is full access."""
    rights: Role = FULL_ACCESS


class Arbitration(Generic[ClientT]):
    """Arbitration of one device. A client is any hashable object; it holds one role for its whole life."""

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._roles: dict[str, _Role[ClientT]] = {}
        self._role_of: dict[ClientT, str] = {}

    def update(
        self, client: ClientT, message: p4r.MasterArbitrationUpdate
    ) -> list[tuple[ClientT, p4r.MasterArbitrationUpdate]]:
        """Process a client's update; return the notifications and their receivers.

        A RequestError ends the client's stream (§5.3).
        """
        name = message.role.name
        if message.device_id != self._device_id:
            raise RequestError(
                FAILED_PRECONDITION,
                f"device_id {message.device_id} is not the one of this stream ({self._device_id})",
            )
        if self._role_of.get(client, name) != name:
            raise RequestError(
                FAILED_PRECONDITION,
                f"role {name!r} is not the one of this stream ({self._role_of[client]!r})",
            )
        if message.role.id and not name:
            raise invalid(f"role id {message.role.id}: roles have names since P4Runtime 1.4")
        config = message.role.config if message.role.HasField("config") else None
        rights = self._read_config(name, config)
        election_id = U128.decode(message.election_id) if message.HasField("election_id") else None
        role = self._roles.get(name) or _Role()
        self._check_election(role, client, election_id)
        if name not in self._roles and len(self._roles) >= MAX_ROLES:
            raise RequestError(RESOURCE_EXHAUSTED, f"the device has {MAX_ROLES} roles already")
        self._roles[name] = role
        role.elections[client] = election_id
        self._role_of[client] = name
        if election_id is not None and (role.highest is None or election_id >= role.highest):
            role.config, role.rights = config, rights
        return self._elect(name, role, client, election_id)

    def _read_config(self, name: str, config: any_pb2.Any | None) -> Role:
        if config is None:
            return FULL_ACCESS
        if not name:
            raise invalid("role.config is set, but the default role has full access")
        rights = read_role(config)
        check_compatible(name, rights, {other: role.rights for other, role in self._roles.items()})
        return rights

    def _check_election(self, role: _Role[ClientT], client: ClientT, election_id: int | None) -> None:
        for other, other_id in role.elections.items():
            if other != client and election_id is not None and other_id == election_id:
                raise RequestError(
                    INVALID_ARGUMENT, f"election id {election_id} is used by another controller of this role"
                )
        if client not in role.elections and len(role.elections) >= MAX_CLIENTS_PER_ROLE:
            raise RequestError(
                RESOURCE_EXHAUSTED, f"{MAX_CLIENTS_PER_ROLE} controllers have this device and role already"
            )

    def _elect(
        self, name: str, role: _Role[ClientT], client: ClientT, election_id: int | None
    ) -> list[tuple[ClientT, p4r.MasterArbitrationUpdate]]:
        was_primary = role.primary == client
        if election_id is not None and (role.highest is None or election_id >= role.highest):
            role.highest, role.primary = election_id, client
            notified = list(role.elections)
        elif was_primary:
            role.primary = None
            notified = list(role.elections)
        else:
            notified = [client]
        # backups first, the new primary last (§5.3)
        notified.sort(key=lambda each: each == role.primary)
        return [(each, self._notification(name, role, each)) for each in notified]

    def _notification(self, name: str, role: _Role[ClientT], client: ClientT) -> p4r.MasterArbitrationUpdate:
        message = p4r.MasterArbitrationUpdate(device_id=self._device_id)
        if name:
            message.role.name = name
        if role.config is not None:
            message.role.config.CopyFrom(role.config)
        if role.highest is not None:
            message.election_id.CopyFrom(U128.encode(role.highest))
        if role.primary is None:
            message.status.CopyFrom(rpc_status.Status(code=NOT_FOUND, message="there is no primary"))
        elif role.primary == client:
            message.status.CopyFrom(rpc_status.Status(code=OK))
        else:
            message.status.CopyFrom(rpc_status.Status(code=ALREADY_EXISTS, message="another controller is primary"))
        return message

    def disconnect(self, client: ClientT) -> list[tuple[ClientT, p4r.MasterArbitrationUpdate]]:
        """Process the end of a client's stream; return the notifications and their receivers."""
        name = self._role_of.pop(client, None)
        if name is None:
            return []
        role = self._roles[name]
        del role.elections[client]
        if role.primary != client:
            return []
        role.primary = None
        return [(each, self._notification(name, role, each)) for each in role.elections]

    def require_primary(self, role_name: str, election_id: p4r.Uint128 | None) -> None:
        """Check the sender of a write.

        NOT_FOUND for an unknown role, PERMISSION_DENIED unless it is primary (§12).
        """
        role = self._roles.get(role_name)
        if role is None and role_name:
            raise RequestError(NOT_FOUND, f"unknown role {role_name!r}", valid=choices(self._roles))
        if role is None or role.primary is None:
            raise RequestError(PERMISSION_DENIED, "there is no primary controller for this device and role")
        if election_id is None or U128.decode(election_id) != role.highest:
            given = "no election_id" if election_id is None else f"election_id {U128.decode(election_id)}"
            raise RequestError(PERMISSION_DENIED, f"{given} is not the primary controller's ({role.highest})")

    def is_primary(self, client: ClientT) -> bool:
        """True if the client is primary for its role."""
        name = self._role_of.get(client)
        return name is not None and self._roles[name].primary == client

    def rights(self, role_name: str) -> Role:
        """Return the rights of a role. NOT_FOUND for an unknown one; the default role may do everything."""
        if not role_name:
            return FULL_ACCESS
        if role_name not in self._roles:
            raise RequestError(NOT_FOUND, f"unknown role {role_name!r}", valid=choices(self._roles))
        return self._roles[role_name].rights

    def rights_of(self, client: ClientT) -> Role:
        """Return the rights of the client's role."""
        return self._roles[self._role_of[client]].rights

    def primaries(self) -> list[tuple[ClientT, Role]]:
        """Return the primaries of all roles, which receive packet-ins, digests and idle timeouts, with their rights."""
        return [(role.primary, role.rights) for role in self._roles.values() if role.primary is not None]
