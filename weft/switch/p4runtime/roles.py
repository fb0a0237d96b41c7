"""The rights of a role's controllers: `role.config` (P4Runtime §5.2).

The specification leaves the format open. Weft accepts Stratum's message, `stratum.P4RoleConfig`, in an Any with
that type:

    1  repeated uint32 exclusive_p4_ids   entities that this role alone may write
    2  repeated uint32 shared_p4_ids      entities that it may write together with other roles
    3  packet_in_filter {1 uint32 metadata_id, 2 bytes value}   packet-ins that it gets; unset: all
    4  bool receives_packet_ins           if it gets packet-ins, and may send packet-outs
    5  bool can_push_pipeline             if it may set the forwarding pipeline

Ids are from P4Info: tables (with their direct resources), action profiles, counters, meters, registers, value
sets and digests. Multicast groups and clone sessions have no ids; any role may write them. Without a config a role
has full access.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from finsy.proto import p4r
from google.protobuf import any_pb2, descriptor_pb2
from google.protobuf.message import DecodeError

from weft.switch.p4runtime.errors import PERMISSION_DENIED, RequestError, choices, invalid
from weft.switch.p4runtime.message_types import message_type
from weft.switch.p4runtime.values import encode

TYPE_NAME = "stratum.P4RoleConfig"
_ID_FIELDS = {
    "table_entry": "table_id",
    "action_profile_member": "action_profile_id",
    "action_profile_group": "action_profile_id",
    "counter_entry": "counter_id",
    "meter_entry": "meter_id",
    "register_entry": "register_id",
    "value_set_entry": "value_set_id",
    "digest_entry": "digest_id",
}


def _message_class() -> Any:
    """Return the message's class, made from the field numbers above."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="stratum/public/proto/p4_role_config.proto", package="stratum", syntax="proto3"
    )
    message = file.message_type.add(name="P4RoleConfig")
    nested = message.nested_type.add(name="PacketFilter")
    nested.field.add(name="metadata_id", number=1, type=field.TYPE_UINT32, label=field.LABEL_OPTIONAL)
    nested.field.add(name="value", number=2, type=field.TYPE_BYTES, label=field.LABEL_OPTIONAL)
    for number, name in ((1, "exclusive_p4_ids"), (2, "shared_p4_ids")):
        message.field.add(name=name, number=number, type=field.TYPE_UINT32, label=field.LABEL_REPEATED)
    message.field.add(
        name="packet_in_filter",
        number=3,
        type=field.TYPE_MESSAGE,
        label=field.LABEL_OPTIONAL,
        type_name=".stratum.P4RoleConfig.PacketFilter",
    )
    for number, name in ((4, "receives_packet_ins"), (5, "can_push_pipeline")):
        message.field.add(name=name, number=number, type=field.TYPE_BOOL, label=field.LABEL_OPTIONAL)
    return message_type(file, TYPE_NAME)


P4RoleConfig = _message_class()
"""The protobuf class of a role's config."""


@dataclass(frozen=True, slots=True)
class Role:
    """The rights of a role; `packet_in_filter` is (metadata id, canonical value)."""

    exclusive: frozenset[int] = frozenset()
    shared: frozenset[int] = frozenset()
    packet_in_filter: tuple[int, bytes] | None = None
    packet_io: bool = True
    can_push_pipeline: bool = True
    full_access: bool = True

    def owns(self, entity: p4r.Entity) -> bool:
        """Return whether the role may write the entity and see it in reads."""
        if self.full_access:
            return True
        number = p4_id(entity)
        return number is None or number in self.exclusive or number in self.shared

    def receives(self, packet: p4r.PacketIn) -> bool:
        """Return whether the role receives the packet-in."""
        if not self.packet_io:
            return False
        if self.packet_in_filter is None:
            return True
        wanted = self.packet_in_filter
        return any((each.metadata_id, each.value) == wanted for each in packet.metadata)


FULL_ACCESS = Role()


def p4_id(entity: p4r.Entity) -> int | None:
    """Return the P4Info id of an entity's object; None for the packet replication engine."""
    kind = entity.WhichOneof("entity") or ""
    if kind in ("direct_counter_entry", "direct_meter_entry"):
        return int(getattr(entity, kind).table_entry.table_id)
    return int(getattr(getattr(entity, kind), _ID_FIELDS[kind])) if kind in _ID_FIELDS else None


def read_role(config: any_pb2.Any) -> Role:
    """Return the rights in a config. INVALID_ARGUMENT if it is of another type, or malformed."""
    name = config.type_url.rpartition("/")[2]
    if name != TYPE_NAME:
        raise invalid(f"role.config has the type {name!r}", valid=choices([TYPE_NAME]))
    message = P4RoleConfig()
    try:
        message.ParseFromString(config.value)
    except DecodeError:
        raise invalid(f"role.config is no {TYPE_NAME}") from None
    chosen = None
    if message.HasField("packet_in_filter"):
        value = message.packet_in_filter.value
        chosen = (message.packet_in_filter.metadata_id, encode(int.from_bytes(value, "big")))
    return Role(
        exclusive=frozenset(message.exclusive_p4_ids),
        shared=frozenset(message.shared_p4_ids),
        packet_in_filter=chosen,
        packet_io=message.receives_packet_ins,
        can_push_pipeline=message.can_push_pipeline,
        full_access=False,
    )


def check_compatible(name: str, role: Role, others: dict[str, Role]) -> None:
    """Raise INVALID_ARGUMENT if one role has exclusive access to an id of another."""
    for other_name, other in others.items():
        if other_name == name or other.full_access or role.full_access:
            continue
        clash = role.exclusive & (other.exclusive | other.shared) | role.shared & other.exclusive
        if clash:
            raise invalid(
                f"role.config: id {min(clash):#010x} belongs to role {other_name!r} already;"
                " exclusive_p4_ids cannot be in two roles"
            )


def require_access(role: Role, update: p4r.Update) -> None:
    """Raise PERMISSION_DENIED if the role may not write the entity (§12)."""
    if not role.owns(update.entity):
        number = p4_id(update.entity) or 0
        raise RequestError(PERMISSION_DENIED, f"the role may not write the entity with id {number:#010x}")
