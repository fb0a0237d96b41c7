"""Random requests never crash the server: it answers, with a code of the specification, and stays usable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from finsy.proto import U128, p4r, rpc_code
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from router_program import (
    ACL,
    COUNTER,
    DENY,
    DIGEST,
    ECMP,
    LEARN,
    METER,
    NO_ACTION,
    PERMIT,
    POLICE,
    POLICE_ACTION,
    PROFILE,
    REGISTER,
    ROUTE,
    ROUTES,
    SET_PORT,
    VALUE_SET,
    entity,
    router_config,
)

from switch.oracle import OracleSwitch
from switch.p4runtime.device import Client, Device
from switch.p4runtime.errors import BatchError, RequestError, to_status

# what a field of this name usually holds, so that many requests get past the first check
_LIKELY: dict[str, st.SearchStrategy[int]] = {
    "table_id": st.sampled_from([ROUTES, ACL, ECMP, POLICE, 0]),
    "action_id": st.sampled_from([ROUTE, PERMIT, DENY, SET_PORT, POLICE_ACTION, LEARN, NO_ACTION]),
    "action_profile_id": st.sampled_from([PROFILE, 0]),
    "counter_id": st.sampled_from([COUNTER, 0]),
    "meter_id": st.sampled_from([METER, 0]),
    "register_id": st.sampled_from([REGISTER, 0]),
    "digest_id": st.sampled_from([DIGEST, 0]),
    "value_set_id": st.sampled_from([VALUE_SET, 0]),
    "prefix_len": st.integers(-1, 33),
    "index": st.integers(-1, 17),
}
_SMALL = st.integers(0, 4)
_INTEGER_BITS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


def _scalar(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.cpp_type in _INTEGER_BITS:
        low, high = _INTEGER_BITS[field.cpp_type]
        likely = _LIKELY.get(field.name, _SMALL)
        return likely | likely | likely | st.integers(low, high)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return st.booleans()
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return st.sampled_from([value.number for value in field.enum_type.values])
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.sampled_from([b"\x01", b"\x00", b"\n\x00\x00\x00"]) | st.binary(max_size=5)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return st.text(max_size=3)
    return st.just(0.0)


def _fill(draw: Callable[[st.SearchStrategy[Any]], Any], message: Message, depth: int) -> None:
    for field in message.DESCRIPTOR.fields:
        if depth <= 0 and field.message_type is not None:
            continue
        if draw(st.integers(0, 3)) == 0:
            continue
        if field.message_type is None:
            value = draw(_scalar(field))
            if field.is_repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)
        elif (
            field.message_type.full_name == "google.protobuf.Any" or field.message_type.GetOptions().map_entry
        ):
            continue
        elif field.is_repeated:
            for _ in range(draw(st.integers(0, 2))):
                _fill(draw, getattr(message, field.name).add(), depth - 1)
        else:
            getattr(message, field.name).SetInParent()
            _fill(draw, getattr(message, field.name), depth - 1)


@st.composite
def entities(draw: Callable[[st.SearchStrategy[Any]], Any]) -> p4r.Entity:
    """An entity of any kind, its fields drawn at random with a liking for ids that exist."""
    made = p4r.Entity()
    field = draw(st.sampled_from(list(made.DESCRIPTOR.oneofs_by_name["entity"].fields)))
    child = getattr(made, field.name)
    child.SetInParent()
    _fill(draw, child, 5)
    return made


@pytest.fixture(scope="module")
def device() -> Device:
    made = Device(1, OracleSwitch(), 510)
    client = Client(lambda response: None)
    made.arbitrate(client, p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1)))
    made.set_pipeline(
        p4r.SetForwardingPipelineConfigRequest(
            device_id=1, election_id=U128.encode(1), action="VERIFY_AND_COMMIT", config=router_config()
        )
    )
    return made


def failed(run: Callable[[], object]) -> RequestError | None:
    """The error that the server gives; any other exception is a crash."""
    try:
        run()
    except RequestError as error:
        return error
    return None


FUZZ = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@FUZZ
@given(st.lists(st.tuples(st.sampled_from([1, 1, 2, 2, 3, 0, 4]), entities()), max_size=3))
def test_random_writes(device: Device, updates: list[tuple[int, p4r.Entity]]) -> None:
    request = p4r.WriteRequest(
        device_id=1,
        election_id=U128.encode(1),
        updates=[p4r.Update(type=kind, entity=each) for kind, each in updates],
    )
    error = failed(lambda: device.write(request))
    if error is not None:
        assert isinstance(error, BatchError)
        assert len(to_status(error).details) == len(updates)
        assert all(detail.canonical_code != rpc_code.INTERNAL for detail in error.details)
    everything = p4r.ReadRequest(device_id=1, entities=[p4r.Entity(table_entry={})])
    assert sum(len(response.entities) for response in device.read(everything)) >= 0


VALID = [
    f'table_entry {{ table_id: {ROUTES} match {{ field_id: 1 lpm {{ value: "\\x0a\\x00\\x00\\x00" prefix_len: 8 }} }}'
    f' action {{ action {{ action_id: {ROUTE} params {{ param_id: 1 value: "\\x03" }}'
    ' params { param_id: 2 value: "\\x05" } } } idle_timeout_ns: 5 counter_data { packet_count: 1 } }',
    f'table_entry {{ table_id: {ACL} match {{ field_id: 1 ternary {{ value: "\\x01" mask: "\\x03" }} }}'
    ' match { field_id: 2 range { low: "\\x01" high: "\\x05" } } match { field_id: 3 optional { value: "\\x11" } }'
    f" priority: 3 action {{ action {{ action_id: {DENY} }} }} meter_config {{ cir: 1 pir: 2 }} }}",
    f"table_entry {{ table_id: {ACL} is_default_action: true action {{ action {{ action_id: {DENY} }} }} }}",
    f'table_entry {{ table_id: {ECMP} match {{ field_id: 1 exact {{ value: "\\x01" }} }}'
    " action { action_profile_group_id: 1 } }",
    f'table_entry {{ table_id: {ECMP} match {{ field_id: 1 exact {{ value: "\\x02" }} }} action {{'
    " action_profile_action_set { action_profile_actions { weight: 1 action {"
    f' action_id: {SET_PORT} params {{ param_id: 1 value: "\\x03" }} }} }} }} }} }}',
    f"action_profile_member {{ action_profile_id: {PROFILE} member_id: 1 action {{"
    f' action_id: {SET_PORT} params {{ param_id: 1 value: "\\x03" }} }} }}',
    f"action_profile_group {{ action_profile_id: {PROFILE} group_id: 1 max_size: 3"
    ' members { member_id: 1 weight: 2 watch_port: "\\x01" } }',
    f"direct_counter_entry {{ table_entry {{ table_id: {ROUTES} match {{ field_id: 1"
    ' lpm { value: "\\x0a\\x00\\x00\\x00" prefix_len: 8 } } } data { packet_count: 3 } }',
    f'register_entry {{ register_id: {REGISTER} index {{ index: 3 }} data {{ bitstring: "\\x01" }} }}',
    f"meter_entry {{ meter_id: {METER} index {{ index: 3 }} config {{ cir: 1 pir: 2 }} }}",
    f"counter_entry {{ counter_id: {COUNTER} index {{ index: 3 }} data {{ byte_count: 3 }} }}",
    f'value_set_entry {{ value_set_id: {VALUE_SET} members {{ match {{ field_id: 1 exact {{ value: "\\x05" }} }} }} }}',
    f"digest_entry {{ digest_id: {DIGEST} config {{ max_list_size: 1 }} }}",
    "packet_replication_engine_entry { clone_session_entry { session_id: 5"
    ' replicas { port: "\\x01" instance: 1 } } }',
]


def _sites(message: Message) -> list[tuple[Message, FieldDescriptor]]:
    found = []
    for field, value in message.ListFields():
        found.append((message, field))
        if field.message_type is not None:
            for child in value if field.is_repeated else [value]:
                found += _sites(child)
    return found


@st.composite
def mutated_entities(draw: Callable[[st.SearchStrategy[Any]], Any]) -> p4r.Entity:
    """A valid entity with up to two fields cleared, changed or repeated."""
    made = entity(draw(st.sampled_from(VALID)))
    for _ in range(draw(st.integers(0, 2))):
        sites = _sites(made)
        if not sites:
            break
        message, field = draw(st.sampled_from(sites))
        if draw(st.booleans()):
            message.ClearField(field.name)
        elif field.is_repeated:
            getattr(message, field.name).append(getattr(message, field.name)[0])
        elif field.message_type is None:
            setattr(message, field.name, draw(_scalar(field)))
    return made


@FUZZ
@given(
    st.lists(st.tuples(st.sampled_from([1, 1, 2, 3]), mutated_entities()), max_size=12),
    st.binary(max_size=60),
)
def test_mutated_writes_and_then_a_packet(
    device: Device, updates: list[tuple[int, p4r.Entity]], packet: bytes
) -> None:
    test_random_writes.hypothesis.inner_test(device, updates)
    switch = device.backend
    assert isinstance(switch, OracleSwitch)
    ethernet = bytes(12) + b"\x08\x00\x45" + packet
    assert all(output.port < 512 for output in switch.process(1, ethernet))


@FUZZ
@given(st.lists(entities(), max_size=3))
def test_random_reads(device: Device, queries: list[p4r.Entity]) -> None:
    error = failed(lambda: list(device.read(p4r.ReadRequest(device_id=1, entities=queries))))
    if error is not None:
        assert isinstance(error, BatchError)
        assert len(error.details) == len(queries)


@st.composite
def stream_messages(draw: Callable[[st.SearchStrategy[Any]], Any]) -> p4r.StreamMessageRequest:
    message = p4r.StreamMessageRequest()
    _fill(draw, message, 4)
    return message


@FUZZ
@given(stream_messages())
def test_random_stream_messages(device: Device, message: p4r.StreamMessageRequest) -> None:
    told: list[p4r.StreamMessageResponse] = []
    client = Client(told.append)
    if message.WhichOneof("update") == "arbitration":
        error = failed(lambda: device.arbitrate(client, message.arbitration))
        assert error is not None or told[-1].HasField("arbitration")
    else:
        device.on_stream_message(client, message)
        assert told[-1].error.canonical_code == rpc_code.PERMISSION_DENIED
    device.disconnect(client)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_random_pipeline_configs(data: st.DataObject) -> None:
    made = Device(1, OracleSwitch(), 510)
    made.arbitrate(
        Client(lambda response: None), p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1))
    )
    config = router_config()
    section = data.draw(st.sampled_from([field.name for field in config.p4info.DESCRIPTOR.fields]))
    part = getattr(config.p4info, section)
    if hasattr(part, "add"):
        _fill(data.draw, part[0] if part and data.draw(st.booleans()) else part.add(), 3)
    elif hasattr(part, "SetInParent"):
        _fill(data.draw, part, 3)
    request = p4r.SetForwardingPipelineConfigRequest(
        device_id=1, election_id=U128.encode(1), action="VERIFY_AND_COMMIT", config=config
    )
    error = failed(lambda: made.set_pipeline(request))
    assert error is None or error.code == rpc_code.INVALID_ARGUMENT
