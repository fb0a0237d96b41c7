"""The Lua dissector of docs/wireshark, run by tshark on frames that Scapy builds."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from scapy.layers.l2 import Ether
from scapy.packet import raw
from scapy.utils import wrpcap

from tests.transport.rdma_pair import wired_pair
from weft.topologies.addressing import result_group_address, result_group_mac
from weft.traffic.aggregation_format import Kind, Operation
from weft.traffic.layers import IntHop, IntShim, ValiantShim, aggregation_frame, rdma_write_frame

SCRIPT = Path(__file__).parents[2] / "docs" / "wireshark" / "weft.lua"
MACS = {"source_mac": "02:00:00:00:00:01", "destination_mac": "02:01:00:00:00:00"}

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


def dissect(path: Path, frames: list) -> list[dict]:
    wrpcap(str(path), frames)
    command = ["tshark", "-r", str(path), "-X", f"lua_script:{SCRIPT}", "-T", "json", "--no-duplicate-keys"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Lua" not in done.stderr
    return [packet["_source"]["layers"] for packet in json.loads(done.stdout)]


def write_frame(source="10.0.0.1", **shim):
    frame = rdma_write_frame(
        **MACS,
        source_ip=source,
        destination_ip=source,
        destination_qp=9,
        psn=4,
        payload=b"weft",
        int_telemetry=True,
    )
    for name, value in shim.items():
        setattr(frame[IntShim], name, value)
    return frame


def test_aggregation_fields_and_lanes_are_shown(tmp_path):
    frame = aggregation_frame(
        **(MACS | {"destination_mac": result_group_mac(300)}),
        source_ip="10.0.0.254",
        destination_ip=str(result_group_address(300)),
        qkey=5,
        kind=Kind.RESULT,
        operation=Operation.MAX,
        job_id=300,
        epoch=2,
        slot=7,
        round_number=99,
        lanes=[1, -5],
    )
    (layers,) = dissect(tmp_path / "a.pcap", [frame])
    shown = layers["weft_aggregation"]
    expected = {"kind": "1", "operation": "1", "job_id": "300", "epoch": "2", "slot": "7", "round": "99"}
    assert {name: shown[f"weft_aggregation.{name}"] for name in expected} == expected
    assert layers["infiniband"]["infiniband.bth_tree"]["infiniband.bth.destqp"] == "0xffffff"
    lanes = shown["weft_aggregation"]
    assert lanes["weft_aggregation.lane"][:3] == ["1", "-5", "0"]


def test_a_header_alone_is_shown_with_its_destination(tmp_path):
    frame = aggregation_frame(
        **MACS, source_ip="10.0.0.1", destination_ip="10.0.0.254", qkey=5, destination=3, lanes=()
    )
    (layers,) = dissect(tmp_path / "h.pcap", [frame])
    shown = layers["weft_aggregation"]
    assert shown["weft_aggregation.lane_count"] == "0"
    assert shown["weft_aggregation.destination"] == "3"
    assert "Lanes" not in shown


@pytest.mark.parametrize(("source", "layer"), [("10.0.0.1", "ip"), ("fd00::1", "ipv6")])
def test_the_shim_is_shown_hop_by_hop_and_rocev2_below_it(tmp_path, source, layer):
    hops = [
        IntHop(rate_code=6, timestamp_ns=0xABCDEF, tx_units=0xFFFFF, queue_cells=0xFFFF),
        IntHop(rate_code=2, timestamp_ns=77, tx_units=3, queue_cells=10),
        *[IntHop()] * 3,
    ]
    (layers,) = dissect(tmp_path / "i.pcap", [write_frame(source, hop_count=2, path_id=0x123, hops=hops)])
    shown = layers["weft_int"]
    assert (shown["weft_int.hop_count"], shown["weft_int.path_id"]) == ("2", "0x0123")
    stamped = shown["weft_int"]
    names = ("rate_code", "timestamp_ns", "tx_bytes", "queue_bytes")
    assert [[hop[f"weft_int.hop.{name}"] for name in names] for hop in stamped] == [
        ["6", str(0xABCDEF), str(0xFFFFF * 128), str(0xFFFF * 80)],
        ["2", "77", "384", "800"],
    ]
    assert layer in layers
    assert layers["infiniband"]["infiniband.bth_tree"]["infiniband.bth.psn"] == "4"


def test_malformed_shims_are_marked_and_nothing_breaks(tmp_path):
    frame = raw(write_frame(hop_count=5))
    cut = [frame[:length] for length in (14, 17, 20, 40, 59)]
    many = raw(write_frame(hop_count=15))
    packets = dissect(tmp_path / "m.pcap", [*cut, many])
    marked = ["weft_int.malformed" in json.dumps(layers) for layers in packets]
    assert marked == [False, False, True, True, True, True]


@pytest.mark.parametrize("below", ["int", "ip"])
def test_the_shim_of_an_intermediate_is_shown_and_what_follows(tmp_path, below):
    whole = write_frame()
    inside = whole[IntShim] if below == "int" else whole[IntShim].payload
    shim = ValiantShim(intermediate=300, next_ethertype=0x88B5 if below == "int" else 0x0800)
    frame = raw(Ether(src=MACS["source_mac"], dst=MACS["destination_mac"]) / shim / inside)
    cut = frame[:18]
    other = frame[:14] + b"\x20" + frame[15:]
    credits = bytes.fromhex("0180c2000001020000000002" + "88b6") + bytes(46)
    shown, *rest = dissect(tmp_path / "v.pcap", [frame, cut, other, credits])
    assert shown["weft_valiant"]["weft_valiant.intermediate"] == "300"
    assert ("weft_int" in shown) == (below == "int")
    assert shown["infiniband"]["infiniband.bth_tree"]["infiniband.bth.psn"] == "4"
    assert ["weft_valiant.malformed" in json.dumps(layers) for layers in rest] == [True, True, False]


def test_selective_repeat_reads_as_writes_of_one_packet(tmp_path):
    """Every packet has a RETH of its own; a NAK's MSN field names the packet that it answers."""
    pair = wired_pair(retransmission="selective-repeat", path_mtu_bytes=256)
    frames = []

    def lossy(sender, frame):
        frames.append(frame)
        return [] if len(frames) == 2 else [frame]

    rkey = pair.b.nic.register_sink(1000, virtual_address=0x1000).rkey
    pair.a.queue_pair.post_write(None, 0, 1000, 0x1000, rkey, immediate=7)
    pair.run(lossy, lambda: bool(pair.a.completions.poll()))
    packets = [each["infiniband"] for each in dissect(tmp_path / "selective.pcap", [Ether(frame) for frame in frames])]
    writes = [each["infiniband.reth_tree"] for each in packets if "infiniband.reth_tree" in each]
    assert [int(each["infiniband.reth.dmalen"]) for each in writes] == [256, 256, 256, 232, 256]
    addresses = [int(each["infiniband.reth.va"], 0) for each in writes]
    assert addresses == [0x1000, 0x1100, 0x1200, 0x1300, 0x1100]
    answers = [
        (int(each["infiniband.bth_tree"]["infiniband.bth.psn"]), each["infiniband.aeth_tree"])
        for each in packets
        if "infiniband.aeth_tree" in each
    ]
    assert [psn for psn, _ in answers] == [0, 1, 1, 3]
    assert [int(aeth["infiniband.aeth.msn"]) for _, aeth in answers] == [0, 2, 3, 1]


def test_a_read_has_its_request_and_responses(tmp_path):
    pair = wired_pair(path_mtu_bytes=256)
    frames = []

    def wire(_sender, frame):
        frames.append(frame)
        return [frame]

    memory = pair.b.nic.register_memory(bytearray(range(250)) * 4, virtual_address=0x1000, remote_read=True)
    pair.a.queue_pair.post_read(None, 0, 1000, 0x1000, memory.rkey)
    pair.run(wire, lambda: bool(pair.a.completions.poll()))
    shown = dissect(tmp_path / "read.pcap", [Ether(frame) for frame in frames])
    assert not any("malformed" in json.dumps(each).lower() for each in shown)
    packets = [each["infiniband"] for each in shown]
    packets = [each for each in packets if int(each["infiniband.bth_tree"]["infiniband.bth.opcode"]) != 0xE1]
    opcodes = [int(each["infiniband.bth_tree"]["infiniband.bth.opcode"]) for each in packets]
    assert opcodes == [0x0C, 0x0D, 0x0E, 0x0E, 0x0F]
    request = packets[0]["infiniband.reth_tree"]
    assert int(request["infiniband.reth.va"], 0) == 0x1000
    assert int(request["infiniband.reth.dmalen"]) == 1000
    psns = [int(each["infiniband.bth_tree"]["infiniband.bth.psn"]) for each in packets]
    assert psns == [0, 0, 1, 2, 3]
    assert ["infiniband.aeth_tree" in each for each in packets] == [False, True, False, False, True]


def test_the_fabric_s_own_rates_are_shown_by_preference(tmp_path):
    hops = [IntHop(rate_code=11), IntHop(rate_code=12), IntHop(rate_code=6), *[IntHop()] * 2]
    frame = write_frame(hop_count=3, hops=hops)
    wrpcap(str(tmp_path / "o.pcap"), [frame])
    command = ["tshark", "-r", str(tmp_path / "o.pcap"), "-X", f"lua_script:{SCRIPT}", "-V"]
    command += ["-o", "weft_int.own_rates:11=133.33, 15=7"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for text in ("133.33 Gb/s", "the fabric's own code 12", "100 Gb/s"):
        assert f"queue 0 B, {text}" in shown
        assert f"({text})" in shown
