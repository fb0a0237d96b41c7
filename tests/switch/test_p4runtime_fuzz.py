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
    METER,
    PERMIT,
    POLICE,
    PROFILE,
    REGISTER,
    ROUTE,
    ROUTES,
    SET_PORT,
    VALUE_SET,
    router_config,
)

from switch.oracle import OracleSwitch
from switch.p4runtime.device import Client, Device
from switch.p4runtime.errors import BatchError, RequestError, to_status

KNOWN_IDS = [
    *(ROUTES, ACL, ECMP, POLICE, ROUTE, PERMIT, DENY, SET_PORT),
    *(PROFILE, COUNTER, METER, REGISTER, DIGEST, VALUE_SET, 0, 1, 2, 3),
]
_INTEGER_BITS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


def _scalar(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.cpp_type in _INTEGER_BITS:
        low, high = _INTEGER_BITS[field.cpp_type]
        return st.sampled_from(KNOWN_IDS) | st.integers(low, high)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return st.booleans()
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return st.sampled_from([value.number for value in field.enum_type.values])
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.binary(max_size=5)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return st.text(max_size=3)
    return st.just(0.0)


def _fill(draw: Callable[[st.SearchStrategy[Any]], Any], message: Message, depth: int) -> None:
    for field in message.DESCRIPTOR.fields:
        if depth <= 0 and field.message_type is not None:
            continue
        if not draw(st.booleans()):
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
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@FUZZ
@given(st.lists(st.tuples(st.integers(0, 4), entities()), max_size=3))
def test_random_writes(device: Device, updates: list[tuple[int, p4r.Entity]]) -> None:
    request = p4r.WriteRequest(
        device_id=1,
        election_id=U128.encode(1),
        updates=[p4r.Update(type=kind, entity=entity) for kind, entity in updates],
    )
    error = failed(lambda: device.write(request))
    if error is not None:
        assert isinstance(error, BatchError)
        assert len(to_status(error).details) == len(updates)
        assert all(detail.canonical_code != rpc_code.INTERNAL for detail in error.details)
    everything = p4r.ReadRequest(device_id=1, entities=[p4r.Entity(table_entry={})])
    assert sum(len(response.entities) for response in device.read(everything)) >= 0


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
