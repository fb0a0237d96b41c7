"""Messages of communication management: the engine, Scapy and tshark read the same fields."""

import ipaddress
import json
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.l2 import Ether
from scapy.packet import raw
from scapy.utils import wrpcap

from tests.wire import mrc_samples
from tests.wire.described_bits import headers, packed
from weft.engine import _core
from weft.traffic.layers import MAD as MAD_LAYER
from weft.traffic.layers import cm_frame
from weft.wire.headers import cm
from weft.wire.headers.cm import MAD, MESSAGES, Message

NOT_READ = ("alternate_", "sap_supported")
ENDS = {
    "source_mac": "02:00:00:00:00:01",
    "destination_mac": "02:00:00:00:00:02",
    "source_ip": "10.0.0.1",
    "destination_ip": "10.0.0.2",
}


def without_alternate(message: Message) -> dict[str, int]:
    """Return the fields of alternate paths, which the engine neither reads nor writes, as zeros."""
    return {name: 0 for name, _ in message.header.numbers() if name.startswith(NOT_READ)}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_fills_its_datagram(name: str) -> None:
    message = MESSAGES[name]
    assert MAD.size_bytes + message.header.size_bytes + message.info_bytes + message.private_bytes == cm.MAD_BYTES
    assert cm.CM_IP_ADDRESSING.size_bytes == cm.IP_ADDRESSING_BYTES


@pytest.mark.parametrize("name", MESSAGES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_message_is_read_and_written_as_described(name: str, data: st.DataObject) -> None:
    message = MESSAGES[name]
    mad = data.draw(headers(MAD, attribute_id=message.number))
    values = data.draw(headers(message.header, **without_alternate(message)))
    info = data.draw(st.binary(min_size=message.info_bytes, max_size=message.info_bytes))
    private = data.draw(st.binary(min_size=message.private_bytes, max_size=message.private_bytes))
    wire = packed(MAD, mad) + packed(message.header, values) + info + private
    assert _core.cm_parse_error(wire) == "none"
    parsed = _core.parse_cm(wire)
    assert (parsed["message"], parsed["info"], parsed["private_data"]) == (name.lower(), info, private)
    assert {**mad, **parsed} == {**parsed, **{key: mad[key] for key in mad}}
    expected = {key: values[key] for key, field in message.header.numbers() if not field.is_fixed}
    assert parsed["fields"] == {key: value for key, value in expected.items() if not key.startswith(NOT_READ)}
    assert _core.build_cm(parsed) == wire


@pytest.mark.parametrize("name", MESSAGES)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_scapy_finds_the_message_in_a_frame(name: str, data: st.DataObject) -> None:
    message = MESSAGES[name]
    values = data.draw(headers(message.header))
    mad = packed(MAD, data.draw(headers(MAD, attribute_id=message.number))) + packed(message.header, values)
    wire = mad + bytes(cm.MAD_BYTES - len(mad))
    frame = Ether(raw(cm_frame(**ENDS, mad=wire)))
    assert raw(frame[MAD_LAYER])[: cm.MAD_BYTES] == wire
    layer = frame[MAD_LAYER].payload
    assert type(layer).__name__ == message.header.name
    assert {key: int(layer.getfieldval(key)) for key in values} == values


@pytest.mark.parametrize(
    ("at", "value", "error"),
    [
        (1, 0x03, "wrong_class"),
        (0, 2, "wrong_version"),
        (2, 1, "wrong_version"),
        (3, 1, "wrong_method"),
        (17, 0x19, "unknown_attribute"),
        (17, 0x0F, "unknown_attribute"),
        (16, 1, "unknown_attribute"),
    ],
)
def test_what_is_not_described_is_refused(at: int, value: int, error: str) -> None:
    mad = bytearray(packed(MAD, {name: field.default for name, field in MAD.numbers()}) + bytes(232))
    assert _core.cm_parse_error(bytes(mad)) == "none"
    mad[at] = value
    assert _core.cm_parse_error(bytes(mad)) == error
    with pytest.raises(ValueError, match=error):
        _core.parse_cm(bytes(mad))


@given(st.binary(max_size=300), st.integers(0x0F, 0x19), st.binary(min_size=232, max_size=232))
def test_any_bytes_are_parsed_or_refused(data: bytes, attribute_id: int, body: bytes) -> None:
    mad = {name: field.default for name, field in MAD.numbers()} | {"attribute_id": attribute_id}
    for each in (data, packed(MAD, mad) + body):
        error = _core.cm_parse_error(each)
        assert (error == "wrong_length") == (len(each) != cm.MAD_BYTES)
        if error == "none":
            _core.parse_cm(each)
        else:
            with pytest.raises(ValueError, match=error):
                _core.parse_cm(each)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"message": "lap"}, "valid: req, mra"),
        ({"message": "rtu", "fields": {"qpn": 1}}, "unknown field 'qpn'"),
        ({"message": "req", "fields": {"local_qpn": 1 << 24}}, "does not fit"),
        ({"message": "req", "private_data": bytes(93)}, "at most 92"),
        ({"message": "rtu", "info": bytes(1)}, "at most 0"),
    ],
)
def test_values_that_do_not_fit_are_refused(message: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        _core.build_cm(message)


# tshark 4.0 does not know MRA, SIDR_REQ and SIDR_REP, and takes flow labels and packet rates from other bytes of a REQ
# than those that the specification and Linux give them.
SHOWN: dict[str, dict[str, str]] = {
    "REQ": {
        "local_comm_id": "req",
        "service_id": "req.serviceid",
        "local_ca_guid": "req.localcaguid",
        "local_qkey": "req.localqkey",
        "local_qpn": "req.localqpn",
        "responder_resources": "req.responderres",
        "initiator_depth": "req.initdepth",
        "remote_response_timeout": "req.remoteresptout",
        "transport": "req.transpsvctype",
        "flow_control": "req.e2eflowctrl",
        "starting_psn": "req.startpsn",
        "local_response_timeout": "req.localresptout",
        "retry_count": "req.retrcount",
        "pkey": "req.pkey",
        "path_mtu": "req.pppmtu",
        "rdc_exists": "req.rdcexist",
        "rnr_retry_count": "req.rnrretrcount",
        "max_cm_retries": "req.maxcmretr",
        "srq": "req.srq",
        "extended_transport": "req.ext_transport",
        "primary_local_lid": "req.prim_locallid",
        "primary_remote_lid": "req.prim_remotelid",
        "primary_traffic_class": "req.prim_tfcclass",
        "primary_hop_limit": "req.prim_hoplim",
        "primary_service_level": "req.prim_sl",
        "primary_subnet_local": "req.prim_subnetlocal",
        "primary_local_ack_timeout": "req.prim_localacktout",
        "alternate_local_lid": "req.alt_locallid",
        "alternate_remote_lid": "req.alt_remotelid",
        "alternate_traffic_class": "req.alt_tfcclass",
        "alternate_hop_limit": "req.alt_hoplim",
        "alternate_service_level": "req.alt_sl",
        "alternate_subnet_local": "req.alt_subnetlocal",
        "alternate_local_ack_timeout": "req.alt_localacktout",
    },
    "REP": {
        "local_comm_id": "rep",
        "remote_comm_id": "rep.remotecommid",
        "local_qkey": "rep.localqkey",
        "local_qpn": "rep.localqpn",
        "starting_psn": "rep.startpsn",
        "responder_resources": "rep.respres",
        "initiator_depth": "rep.initdepth",
        "target_ack_delay": "rep.tgtackdelay",
        "failover_accepted": "rep.failoveracc",
        "flow_control": "rep.e2eflowctrl",
        "rnr_retry_count": "rep.rnrretrcount",
        "srq": "rep.srq",
        "local_ca_guid": "rep.localcaguid",
    },
    "RTU": {"local_comm_id": "rtu.localcommid", "remote_comm_id": "rtu.remotecommid"},
    "REJ": {
        "local_comm_id": "rej.localcommid",
        "remote_comm_id": "rej.remotecommid",
        "message": "rej.msgrej",
        "info_length": "rej.rejinfolen",
        "reason": "rej.reason",
    },
    "DREQ": {
        "local_comm_id": "dreq.localcommid",
        "remote_comm_id": "dreq.remotecommid",
        "remote_qpn": "req.remoteqpneecn",
    },
    "DREP": {"local_comm_id": "drsp.localcommid", "remote_comm_id": "drsp.remotecommid"},
}
IP_SHOWN = {
    "major_version": "req.ip_cm.majv",
    "minor_version": "req.ip_cm.minv",
    "ip_version": "req.ip_cm.ipv",
    "source_port": "req.ip_cm.sport",
}


def drawn(header: cm.Header, number: int, **given_values: int) -> dict[str, int]:
    return mrc_samples.drawn(Random(f"{header.name} {number}"), header, **given_values)


def found_in(layer: Any, name: str) -> str:
    """Return the text of a field at any depth."""
    if isinstance(layer, dict):
        if isinstance(layer.get(name), str):
            return str(layer[name])
        layer = layer.values()
    elif not isinstance(layer, list):
        return ""
    return next(filter(None, (found_in(each, name) for each in layer)), "")


def dissected(path: Path, wires: list[bytes]) -> list[Any]:
    wrpcap(str(path), [cm_frame(**ENDS, mad=each) for each in wires])
    command = ["tshark", "-r", str(path), "-T", "json", "--no-duplicate-keys"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [each["_source"]["layers"]["infiniband"] for each in json.loads(done.stdout)]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("name", SHOWN)
def test_tshark_shows_the_described_fields(name: str, tmp_path: Path) -> None:
    message, names = MESSAGES[name], SHOWN[name]
    every = [drawn(message.header, number) for number in range(20)]
    mads = [drawn(MAD, number, attribute_id=message.number) for number in range(20)]
    rest = bytes(message.info_bytes + message.private_bytes)
    wires = [packed(MAD, mad) + packed(message.header, each) + rest for mad, each in zip(mads, every, strict=True)]
    for mad, values, layer in zip(mads, every, dissected(tmp_path / "cm.pcap", wires), strict=True):
        assert int(found_in(layer, "infiniband.mad.transactionid"), 0) == mad["transaction_id"]
        assert int(found_in(layer, "infiniband.mad.attributemodifier"), 0) == mad["attribute_modifier"]
        shown = {key: int(found_in(layer, f"infiniband.cm.{field}"), 0) for key, field in names.items()}
        assert shown == {key: values[key] for key in names}


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("version", [4, 6])
def test_tshark_shows_ip_addresses_of_a_request(version: int, tmp_path: Path) -> None:
    source, destination = ("10.1.2.3", "10.4.5.6") if version == 4 else ("fd00::1:2", "fd00::3:4")
    numbers = [int(ipaddress.ip_address(each)) for each in (source, destination)]
    half = (1 << 64) - 1
    addressing = drawn(
        cm.CM_IP_ADDRESSING,
        version,
        ip_version=version,
        source_address_high=numbers[0] >> 64,
        source_address_low=numbers[0] & half,
        destination_address_high=numbers[1] >> 64,
        destination_address_low=numbers[1] & half,
    )
    req = drawn(cm.CM_REQ, 1, service_id=0x0000000001064E21)
    data = packed(cm.CM_IP_ADDRESSING, addressing)
    wire = packed(MAD, drawn(MAD, 1, attribute_id=0x10)) + packed(cm.CM_REQ, req) + data + bytes(56)
    (layer,) = dissected(tmp_path / "ip.pcap", [wire])
    shown = {key: int(found_in(layer, f"infiniband.cm.{field}"), 0) for key, field in IP_SHOWN.items()}
    assert shown == {key: addressing[key] for key in IP_SHOWN}
    assert found_in(layer, f"infiniband.cm.req.ip_cm.sip{version}") == source
    assert found_in(layer, f"infiniband.cm.req.ip_cm.dip{version}") == destination
    assert int(found_in(layer, "infiniband.cm.req.serviceid.dport"), 0) == 0x4E21
