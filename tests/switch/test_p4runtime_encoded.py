"""A request that sets a pipeline, in one part or in two: what is read is what P4Runtime's own message has."""

from __future__ import annotations

import pytest
from finsy.proto import p4r
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from weft.switch.p4runtime.encoded_messages import parse_pipeline_request

Request = p4r.SetForwardingPipelineConfigRequest
HEADS = st.builds(
    Request,
    device_id=st.integers(0, 1 << 40),
    role=st.sampled_from(("", "operator")),
    election_id=st.none() | st.builds(p4r.Uint128, high=st.integers(0, 9), low=st.integers(0, 9)),
    action=st.sampled_from(Request.Action.values()),
)
CONFIGS = st.builds(
    p4r.ForwardingPipelineConfig,
    p4_device_config=st.binary(max_size=300),
    cookie=st.none() | st.builds(p4r.ForwardingPipelineConfig.Cookie, cookie=st.integers(0, 1 << 60)),
)


def same(data: bytes, shared: bytes) -> bool:
    """Whether two parts are read as P4Runtime's message is read from both together."""
    expected = Request.FromString(data + shared)
    found = parse_pipeline_request(data, shared)
    config = None if found.config is None else p4r.ForwardingPipelineConfig.FromString(found.config)
    names = ("device_id", "role", "action", "election_id")
    return (
        found.device_id == expected.device_id
        and all(getattr(found.head, name) == getattr(expected, name) for name in names)
        and found.head.HasField("election_id") == expected.HasField("election_id")
        and config == (expected.config if expected.HasField("config") else None)
    )


@given(HEADS, st.none() | CONFIGS, st.none() | CONFIGS, st.none() | HEADS)
def test_parts_are_read_as_the_whole(head, first, second, more) -> None:
    own = head.SerializeToString()
    for config in (first, second):
        own += b"" if config is None else Request(config=config).SerializeToString()
    assert same(own, b"")
    shared = b"" if second is None else Request(config=second).SerializeToString()
    shared += b"" if more is None else more.SerializeToString()
    assert same(head.SerializeToString(), shared)
    assert same(own, shared)


def test_requests_share_what_they_are_given_together() -> None:
    shared = Request(config=p4r.ForwardingPipelineConfig(p4_device_config=b"{}")).SerializeToString()
    requests = [parse_pipeline_request(Request(device_id=number).SerializeToString(), shared) for number in (1, 2)]
    assert [request.device_id for request in requests] == [1, 2]
    assert requests[0].config is requests[1].config


@pytest.mark.parametrize(("data", "shared"), [(b"\xff", b""), (b"", b"\xff"), (b"\x08", b"\x01"), (b"\x22\x7f", b"x")])
def test_malformed_bytes_are_refused(data: bytes, shared: bytes) -> None:
    if (data, shared) == (b"\x08", b"\x01"):  # a field cut in two is none of either part
        assert Request.FromString(data + shared).device_id == 1
    with pytest.raises(DecodeError):
        parse_pipeline_request(data, shared)
