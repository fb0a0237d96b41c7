"""What crosses a host's link is valid RoCEv2, as Scapy and Wireshark see it."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scapy.utils import rdpcap

from end_to_end_data import buffers
from weft.run.collectives import CollectiveRequest
from weft.traffic.layers import BTH, AggregationHeader, IntShim, icrc_is_valid

DISSECTOR = Path(__file__).parents[2] / "docs" / "wireshark" / "weft.lua"


@pytest.fixture(scope="module")
def capture(small_fabric, tmp_path_factory):
    """Both algorithms as the switch's interface towards h0 sees them, captured as any sniffer would."""
    path = tmp_path_factory.mktemp("capture") / "h0.pcap"
    sniffer = subprocess.Popen(
        [
            "tcpdump",
            "-i",
            "p0l0-eth1",
            "-U",
            "-w",
            str(path),
            "--immediate-mode",
            "udp or ether proto 0x88b5",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert any("listening on" in line for line in sniffer.stderr)
    try:
        for algorithm in ("ring", "in-network"):
            assert small_fabric.run(CollectiveRequest("allreduce", buffers(np.int32, 2000, 4), algorithm)).result.ok
    finally:
        sniffer.terminate()
        sniffer.communicate(timeout=10)
    return path


def test_scapy_recomputes_every_icrc(capture):
    packets = [packet for packet in rdpcap(str(capture)) if BTH in packet]
    assert len(packets) > 60
    for packet in packets:
        assert icrc_is_valid(bytes(packet)), packet.summary()


def test_both_algorithms_and_int_were_there(capture):
    packets = rdpcap(str(capture))
    kinds = {packet[AggregationHeader].kind for packet in packets if AggregationHeader in packet}
    assert kinds == {0, 1}
    stamped = [packet[IntShim].hop_count for packet in packets if IntShim in packet]
    # Leaving h0 nothing is stamped yet; arriving there, all switches of the path are, and so are echoes.
    assert {0, 1, 3} >= set(stamped) > {0}


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_decodes_only_valid_rocev2(capture):
    command = [
        "tshark",
        "-r",
        str(capture),
        "-X",
        f"lua_script:{DISSECTOR}",
        "-T",
        "json",
        "--no-duplicate-keys",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    packets = [packet["_source"]["layers"] for packet in json.loads(done.stdout)]
    assert len(packets) > 60
    for layers in packets:
        assert "infiniband" in layers, layers["frame"]
        assert "_ws.malformed" not in layers
        assert "infiniband.invariant.crc" in layers["infiniband"]
