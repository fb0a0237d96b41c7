"""tshark with docs/wireshark/weft.lua shows every described field of any packet."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

from tests.wire.described_bits import packed
from tests.wire.mrc_samples import KINDS, number_of, sample
from tests.wire.uet_samples import KINDS as UET_KINDS
from tests.wire.uet_samples import sample as uet_sample
from weft.traffic.aggregation_format import CONTRIBUTION_QP
from weft.traffic.layers import service_frame
from weft.traffic.layers.frames import datagram_headers
from weft.wire import Field, Header
from weft.wire.code_points import DSCP_TRIMMED
from weft.wire.headers.aggregation import AGGREGATION
from weft.wire.headers.int_shim import INT_ETHERTYPE, INT_HOP, INT_SHIM
from weft.wire.headers.mac_control import CREDIT_LANE, CREDIT_UPDATE
from weft.wire.headers.mrc import MRC_BTH
from weft.wire.headers.network import ETHERNET
from weft.wire.headers.notification import NOTIFICATION_UDP_PORT, SWITCH_NOTIFICATION
from weft.wire.headers.parameter import PARAMETER, PARAMETER_CLIENT_QP, PARAMETER_STORE_QP
from weft.wire.headers.service import REQUEST_QP, SERVICE
from weft.wire.headers.valiant_shim import VALIANT_ETHERTYPE, VALIANT_SHIM

SCRIPT = Path(__file__).parents[2] / "docs" / "wireshark" / "weft.lua"
PACKETS = 20
MACS = {"source_mac": "02:00:00:00:00:01", "destination_mac": "02:01:00:00:00:00"}

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


def drawn(header: Header, number: int) -> dict[str, int]:
    """Draw values of a header's numbers, the lowest and the highest more often than others."""
    random = Random(f"{header.name} {number}")

    def value_of(valid: range | tuple[int, ...]) -> int:
        any_other = random.randint(valid[0], valid[-1]) if isinstance(valid, range) else random.choice(valid)
        return random.choice((valid[0], valid[-1], any_other))

    return {name: value_of(field.valid_values) for name, field in header.numbers()}


def datagram(header: bytes, source_qp: int, destination_qp: int) -> Packet:
    ends = {"source_ip": "10.0.0.1", "destination_ip": "10.0.0.2", "source_port": 0xC000, "hop_limit": 64}
    return datagram_headers(**MACS, **ends, qkey=5, queue_pairs=(source_qp, destination_qp), psn=0) / Raw(header)


def framed(header: Header, values: dict[str, int]) -> Packet:
    """Return a frame with this header where it belongs."""
    data = packed(header, values)
    if header is AGGREGATION:
        return datagram(data, CONTRIBUTION_QP, CONTRIBUTION_QP)
    if header is SERVICE:
        return datagram(data, REQUEST_QP, REQUEST_QP)
    if header is PARAMETER:
        return datagram(data, PARAMETER_CLIENT_QP, PARAMETER_STORE_QP)
    if header is SWITCH_NOTIFICATION:
        below = Ether(src=MACS["source_mac"], dst=MACS["destination_mac"]) / IP(src="10.0.0.1", dst="10.0.0.2")
        return below / UDP(sport=0xC000, dport=NOTIFICATION_UDP_PORT) / Raw(data)
    if header is VALIANT_SHIM:
        return Ether(src=MACS["source_mac"], dst=MACS["destination_mac"], type=VALIANT_ETHERTYPE) / Raw(data)
    if header is INT_SHIM:
        return Ether(src=MACS["source_mac"], dst=MACS["destination_mac"], type=INT_ETHERTYPE) / Raw(data)
    return Ether(data)


def dissected(path: Path, frames: list[Packet], protocol: str) -> list[dict[str, Any]]:
    wrpcap(str(path), frames)
    command = ["tshark", "-r", str(path), "-X", f"lua_script:{SCRIPT}", "-T", "json", "--no-duplicate-keys"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Lua" not in done.stderr
    return [packet["_source"]["layers"][protocol] for packet in json.loads(done.stdout)]


def shown_numbers(header: Header, values: dict[str, int], without: int = 0) -> Iterator[tuple[str, int]]:
    """Return what the dissector shows: bytes for units, no zeros that are always there."""
    for field in header.fields[without:]:
        if isinstance(field, Field) and not (field.is_fixed and field.default == 0):
            if field.unit_bytes:
                yield f"{field.name.rpartition('_')[0]}_bytes", values[field.name] * field.unit_bytes
            else:
                yield field.name, values[field.name]


def read_numbers(prefix: str, shown: dict[str, Any]) -> dict[str, int]:
    return {
        name.removeprefix(f"{prefix}."): int(value, 0)
        for name, value in shown.items()
        if isinstance(value, str) and name.startswith(f"{prefix}.")
    }


@pytest.mark.parametrize(
    ("header", "protocol", "without"),
    [
        (AGGREGATION, "weft_aggregation", 0),
        (SERVICE, "weft_service", 0),
        (PARAMETER, "weft_parameter", 0),
        (SWITCH_NOTIFICATION, "weft_notification", 0),
        (VALIANT_SHIM, "weft_valiant", 0),
        (CREDIT_UPDATE, "weft_credits", len(ETHERNET.fields)),
    ],
    ids=lambda each: each.name if isinstance(each, Header) else "",
)
def test_every_field_is_shown(header: Header, protocol: str, without: int, tmp_path: Path) -> None:
    every = [drawn(header, number) for number in range(PACKETS)]
    for values in every:
        values.update({"lane_count": 0} if header is AGGREGATION else {})
    shown = dissected(tmp_path / "fields.pcap", [framed(header, values) for values in every], protocol)
    for values, layer in zip(every, shown, strict=True):
        assert read_numbers(protocol, layer) == dict(shown_numbers(header, values, without))


def test_every_field_of_the_shim_and_its_hops_is_shown(tmp_path: Path) -> None:
    every = [drawn(INT_SHIM, number) | {"hop_count": number % 6} for number in range(PACKETS)]
    shown = dissected(tmp_path / "int.pcap", [framed(INT_SHIM, values) for values in every], "weft_int")
    for values, layer in zip(every, shown, strict=True):
        assert read_numbers("weft_int", layer) == dict(shown_numbers(INT_SHIM, values))
        stamped = layer.get("weft_int", [])
        stamped = [stamped] if isinstance(stamped, dict) else stamped
        hops = [{name: values[f"hops[{hop}].{name}"] for name in names_of(INT_HOP)} for hop in range(5)]
        expected = [dict(shown_numbers(INT_HOP, hop)) for hop in hops[: values["hop_count"]]]
        assert [read_numbers("weft_int.hop", hop) for hop in stamped] == expected


def names_of(header: Header) -> list[str]:
    return [name for name, _ in header.numbers()]


def test_credits_of_the_classes_in_use_are_shown(tmp_path: Path) -> None:
    every = [drawn(CREDIT_UPDATE, number) for number in range(PACKETS)]
    shown = dissected(tmp_path / "c.pcap", [framed(CREDIT_UPDATE, values) for values in every], "weft_credits")
    for values, layer in zip(every, shown, strict=True):
        lanes = layer.get("weft_credits", [])
        lanes = [lanes] if isinstance(lanes, dict) else lanes
        used = [lane for lane in range(8) if values["enabled_lanes"] >> lane & 1]
        assert [read_numbers("weft_credits.lane", each) for each in lanes] == [
            dict(shown_numbers(CREDIT_LANE, {name: values[f"lanes[{lane}].{name}"] for name in names_of(CREDIT_LANE)}))
            for lane in used
        ]


def test_a_datagram_of_another_version_is_not_taken_for_weft_s(tmp_path: Path) -> None:
    frame = service_frame(**MACS, source_ip="10.0.0.1", destination_ip="10.0.0.2", qkey=5, version=2)
    wrpcap(str(tmp_path / "v.pcap"), [frame])
    command = ["tshark", "-r", str(tmp_path / "v.pcap"), "-X", f"lua_script:{SCRIPT}", "-T", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "weft_service" not in done.stdout


MRC_PREFIXES = {"MrcBTH": "bth", "CCState": "cc_state"}


def shown_within(layer: dict[str, Any], protocol: str) -> dict[str, int]:
    """Return the numbers of all headers within a layer."""
    inner = layer.get(protocol, [])
    found = read_numbers(protocol, layer)
    for each in inner if isinstance(inner, list) else [inner]:
        found |= read_numbers(protocol, each)
    return found


def test_every_field_of_mrc_is_shown(tmp_path: Path) -> None:
    every = [sample(kind, number) for kind in KINDS for number in range(PACKETS)]
    shown = dissected(tmp_path / "mrc.pcap", [Ether(each.frame) for each in every], "weft_mrc")
    for drawn, layer in zip(every, shown, strict=True):
        expected = {}
        for header, values in ((MRC_BTH, drawn.bth), *drawn.extended):
            prefix = MRC_PREFIXES.get(header.name, header.name.lower())
            signed = {
                each.name: number_of(each, values[each.name]) for each in header.fields if isinstance(each, Field)
            }
            expected |= {f"{prefix}.{name}": value for name, value in shown_numbers(header, signed)}
        assert shown_within(layer, "weft_mrc") == expected


def test_frames_that_end_within_the_headers_of_mrc_are_marked(tmp_path: Path) -> None:
    """A trimmed packet with whole headers is not."""
    drawn = sample("MRC_RDMA_WRITE_ONLY", 1).with_dscp(DSCP_TRIMMED)
    cuts = [Ether(drawn.frame[: drawn.header_bytes + more]) for more in (-17, -1, 0, 8)]
    shown = dissected(tmp_path / "cut.pcap", cuts, "weft_mrc")
    assert ["weft_mrc.malformed" in json.dumps(layer) for layer in shown] == [True, True, False, False]


def test_every_field_of_uet_is_shown(tmp_path: Path) -> None:
    every = [uet_sample(kind, number) for kind in UET_KINDS for number in range(PACKETS)]
    shown = dissected(tmp_path / "uet.pcap", [Ether(each.frame) for each in every], "weft_uet")
    for drawn, layer in zip(every, shown, strict=True):
        expected = {}
        for header, values in drawn.headers:
            signed = {
                each.name: number_of(each, values[each.name]) for each in header.fields if isinstance(each, Field)
            }
            prefix = header.name.removeprefix("UET").lower()
            expected |= {f"{prefix}.{name}": value for name, value in shown_numbers(header, signed)}
        assert shown_within(layer, "weft_uet") == expected


@pytest.mark.parametrize("kind", UET_KINDS)
def test_uet_packets_that_end_within_their_headers_are_marked(kind: str, tmp_path: Path) -> None:
    drawn = uet_sample(kind, 1)
    cuts = [Ether(drawn.framed(drawn.datagram[:length])) for length in range(2, drawn.header_bytes + 1)]
    shown = dissected(tmp_path / "cut.pcap", cuts, "weft_uet")
    marked = ["weft_uet.malformed" in json.dumps(layer) for layer in shown]
    assert marked == [True] * (len(cuts) - 1) + [False]
