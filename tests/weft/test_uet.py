"""Scenarios over UET: collectives and flows are right, switches trim, and what does not go is refused."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scapy.layers.inet import UDP
from scapy.utils import rdpcap

from weft import Fabric, topologies
from weft.engine import parse_uet
from weft.errors import BadInputError
from weft.run.collectives import CollectiveRequest
from weft.run.traffic_kinds.remote_memory import RemoteMemoryTraffic
from weft.scenario import FaultsSection, TransportSection, TrimmingSection, parse_scenario
from weft.wire.headers.uet import UET_UDP_PORT

SCRIPT = Path(__file__).parents[2] / "docs" / "wireshark" / "weft.lua"
US = 10**6
TOPOLOGY = topologies.leaf_spine(planes=1, leaves=2, spines=4, hosts_per_leaf=2, host_rate_bps=100 * 10**9, delay_ps=US)
CROWDED = topologies.leaf_spine(
    planes=1, leaves=1, spines=1, hosts_per_leaf=8, host_rate_bps=100 * 10**9, queue_capacity_bytes=64 << 10
)
UET = TransportSection(protocol="uet")
ROD = TransportSection(protocol="uet", service="rod")
CREDITS = TransportSection(protocol="uet", receiver_credits=True)


def made(**options: Any) -> Fabric:
    return Fabric(TOPOLOGY, clock="virtual", int_telemetry=False, **({"transport": UET} | options))


def totals(fabric: Fabric) -> dict[str, int]:
    each = [host["totals"] for host in fabric.hosts.stats()]
    return {name: sum(one[name] for one in each) for name in each[0]}


@pytest.mark.parametrize("transport", [UET, ROD, CREDITS], ids=["rud", "rod", "rccc"])
@pytest.mark.parametrize("ip_version", [4, 6])
@pytest.mark.parametrize(
    "faults", [{}, {"loss": 0.01, "duplicate": 0.01, "delay_probability": 0.01, "extra_delay": 5 * US}]
)
def test_an_all_reduce_is_right_whatever_the_links_do(
    faults: dict[str, Any], ip_version: int, transport: TransportSection
) -> None:
    with made(ip_version=ip_version, faults=FaultsSection(**faults), transport=transport) as fabric:
        given = [np.random.default_rng(rank).integers(-99, 99, 60_000, np.int32) for rank in range(4)]
        run = fabric.run(CollectiveRequest("allreduce", given, "ring"))
        assert run.result.ok
        assert all(np.array_equal(output, np.sum(given, axis=0)) for output in run.buffers)
        found = totals(fabric)
    assert found["data_packets_sent"] > 0
    assert (found["retransmitted_packets"] > 0) == bool(faults)
    assert found["pdcs_opened"] >= 4


def test_flows_use_all_spines_and_close_their_pdcs() -> None:
    with made() as fabric:
        result = fabric.permutation(400_000)
        ports = fabric.lab.switch_stats()["switches"]["p0l0"]["ports"]
        found = totals(fabric)
    uplinks = [port["transmit"]["transmitted"]["bytes"] for number, port in ports.items() if int(number) > 2]
    assert result.retransmissions == 0
    assert found["out_of_sequence_packets"] > 0
    assert max(uplinks) < 1.5 * min(uplinks)
    assert found["pdcs_opened"] == found["pdcs_accepted"] == 4


def test_an_incast_with_trimming_drops_nothing() -> None:
    with Fabric(
        CROWDED, clock="virtual", int_telemetry=False, transport=UET, trimming=TrimmingSection(classes=[3])
    ) as fabric:
        result = fabric.incast("h0", 200_000)
        found = totals(fabric)
        ports = fabric.lab.switch_stats()["switches"]["p0l0"]["ports"].values()
    trimmed = sum(port["transmit"]["trimmed"]["packets"] for port in ports)
    assert trimmed > 0
    assert found["trim_nacks_received"] == found["trim_nacks_sent"] == trimmed
    assert result.retransmissions >= trimmed
    assert found["timeouts"] == found["other_nacks_sent"] == 0


def test_receiver_credits_keep_an_incast_s_queue_short() -> None:
    """16 to 1, where NSCC alone starts with a window from each sender."""
    incast = topologies.leaf_spine(
        planes=1, leaves=1, spines=1, hosts_per_leaf=17, host_rate_bps=100 * 10**9, queue_capacity_bytes=16 << 20
    )
    depths, times = [], []
    for credits in ({}, {"receiver_credits": True, "credit_advance": 4096}):
        transport = TransportSection(protocol="uet", **credits)
        with Fabric(incast, clock="virtual", int_telemetry=False, transport=transport) as fabric:
            result = fabric.incast("h0", 400_000)
            nic = fabric.topology.hosts[0].nics[0]
            port = fabric.lab.switch_stats()["switches"][nic.switch]["ports"][str(nic.switch_port)]
            assert result.retransmissions == 0
            depths.append(port["transmit"]["max_queue_depth_bytes"])
            times.append(result.time_ps)
    assert depths[1] < 150_000 < depths[0]
    assert times[1] < 1.1 * times[0]


@pytest.mark.parametrize("transport", [UET, ROD, CREDITS], ids=["rud", "rod", "rccc"])
@pytest.mark.parametrize("size", [64, 4096, 20_000])
def test_a_read_of_remote_memory_alone_takes_what_the_closed_form_says(transport: TransportSection, size: int) -> None:
    with made(transport=transport) as fabric:
        item = RemoteMemoryTraffic.model_validate(
            {"remote_memory": [3], "clients": [0], "size": size, "reads": 4, "outstanding": 1}
        )
        (found,) = fabric.run_together([item.prepare_task(4, 1)(fabric)])
    is_exact = size == 64 and not transport.receiver_credits
    assert found.latency_ps.least == pytest.approx(found.unloaded_ps, rel=0 if is_exact else 0.01)
    # The acknowledgement of data goes before the next request.
    assert found.latency_ps.largest < 1.02 * found.latency_ps.least


def test_how_many_reads_are_under_way_is_an_option() -> None:
    found = []
    for limit in (1, 2):
        with made(transport=TransportSection(protocol="uet", max_outstanding_reads=limit)) as fabric:
            item = RemoteMemoryTraffic.model_validate(
                {"remote_memory": [3], "clients": [0], "reads": 100, "outstanding": 16}
            )
            found.extend(fabric.run_together([item.prepare_task(4, 1)(fabric)]))
    for one in found:
        assert one.bytes_per_s <= 1.001 * one.bounds_bytes_per_s["outstanding"]
    assert found[1].bytes_per_s == pytest.approx(2 * found[0].bytes_per_s, rel=0.05)


@pytest.mark.parametrize("transport", [UET, ROD, CREDITS], ids=["rud", "rod", "rccc"])
def test_an_incast_of_reads_is_whole_whatever_the_links_do(transport: TransportSection) -> None:
    """All hosts read one client's memories, and a fabric that loses packets."""
    faults = FaultsSection(loss=0.01, duplicate=0.01, delay_probability=0.01, extra_delay=5 * US)
    with made(transport=transport, faults=faults) as fabric:
        item = RemoteMemoryTraffic.model_validate(
            {"remote_memory": [1, 2, 3], "clients": [0], "size": 30_000, "reads": 20, "outstanding": 8}
        )
        (found,) = fabric.run_together([item.prepare_task(4, 1)(fabric)])
        counted = totals(fabric)
    assert found.reads == 20
    assert counted["data_bytes_received"] == 20 * 30_000
    assert counted["retransmitted_packets"] > 0
    assert counted["wrong_responses"] == 0


@pytest.mark.slow
def test_a_hundred_thousand_messages_are_neither_wrong_nor_stuck() -> None:
    """All pairs of 16 hosts, 7 times over, with faults and few PDCs."""
    fabric_of_16 = topologies.leaf_spine(
        planes=1, leaves=4, spines=4, hosts_per_leaf=4, host_rate_bps=100 * 10**9, delay_ps=US
    )
    transport = TransportSection(protocol="uet", max_pdcs=8, pdc_idle=20 * US)
    faults = FaultsSection(loss=0.002, duplicate=0.002, delay_probability=0.01, extra_delay=5 * US)
    messages = 0
    with Fabric(fabric_of_16, clock="virtual", int_telemetry=False, transport=transport, faults=faults) as fabric:
        while messages < 100_000:
            given = [np.random.default_rng([rank, messages]).integers(-99, 99, 16 * 64, np.int32) for rank in range(16)]
            run = fabric.run(CollectiveRequest("allreduce", given, "ring"))
            assert run.result.ok
            assert all(np.array_equal(output, np.sum(given, axis=0)) for output in run.buffers)
            messages += 16 * 2 * 15


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({}, "packets of uet carry no INT"),
        ({"int": False, "pfc": {"classes": [3]}, "trimming": {"classes": [3]}}, "lossless by pfc.classes"),
        ({"int": False, "scheduling": {"classes": [2]}}, "scheduling.classes"),
        ({"int": False, "fidelity": {"segment": "64KiB"}}, "do not travel in segments"),
        ({"int": False, "transport": {"retransmission": "go-back-n"}}, "go-back-n does not go with service: rud"),
        ({"int": False, "transport": {"service": "rod", "path": "reps"}}, "needs retransmission: selective-repeat"),
        ({"int": False, "transport": {"congestion_control": "dcqcn"}}, "dcqcn follows CNPs"),
        ({"int": False, "transport": {"ev_count": 4}}, "ev_count does not go with protocol: uet"),
        ({"int": False, "transport": {"protocol": "mrc", "receiver_credits": True}}, "does not go with protocol: mrc"),
        ({"int": False, "transport": {"protocol": "rc", "max_pdcs": 4}}, "max_pdcs does not go with protocol: rc"),
    ],
)
def test_what_does_not_go_with_uet_is_refused(tree: dict[str, Any], words: str) -> None:
    given = {"clock": "virtual", **tree, "transport": {"protocol": "uet"} | tree.get("transport", {})}
    with pytest.raises(BadInputError, match=words):
        parse_scenario(given, "s.yaml")


@pytest.mark.parametrize(
    ("service", "expected"), [("rud", ("nscc", "selective-repeat", "reps")), ("rod", ("nscc", "go-back-n", "flow"))]
)
def test_the_service_says_what_is_default(service: str, expected: tuple[str, str, str]) -> None:
    section = TransportSection(protocol="uet", service=service)
    assert (section.congestion_control, section.retransmission, section.path) == expected
    assert TransportSection(protocol="uet", path="spray").path == "spray"


@pytest.mark.parametrize("ip_version", [4, 6])
def test_a_capture_has_what_the_codec_and_the_dissector_read(ip_version: int, tmp_path: Path) -> None:
    path = tmp_path / "h0.pcap"
    with made(ip_version=ip_version) as fabric:
        fabric.capture("h0", 0, path)
        fabric.incast("h0", 5000)
        item = RemoteMemoryTraffic.model_validate({"remote_memory": [3], "clients": [0], "size": 3000, "reads": 2})
        fabric.run_together([item.prepare_task(4, 1)(fabric)])
    datagrams = [frame[UDP] for frame in rdpcap(str(path)) if UDP in frame]
    payloads = [bytes(each.payload) for each in datagrams if each.dport == UET_UDP_PORT]
    assert len(payloads) == len(datagrams) > 20
    names = [[name for name, _ in parse_uet(payload)[0]] for payload in payloads]
    assert {each[0] for each in names} <= {"UETSynRequest", "UETRequest", "UETAck", "UETControl"}
    assert ["UETSynRequest", "UETStandard"] in names
    assert ["UETAck", "UETAckCC", "UETNSCCState", "UETResponse"] in names
    assert ["UETRequest", "UETResponseData"] in names
    if shutil.which("tshark") is not None:
        command = ["tshark", "-r", str(path), "-X", f"lua_script:{SCRIPT}", "-T", "fields", "-e", "frame.protocols"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        assert sum("uet" in line for line in shown) == len(payloads)


def test_identifiers_of_pdcs_are_not_given_to_others_while_a_close_may_be_repeated() -> None:
    """Each host closes and opens more PDCs than are kept from being used again, and answers to closes are lost."""
    wide = topologies.leaf_spine(
        planes=1, leaves=16, spines=2, hosts_per_leaf=4, host_rate_bps=100 * 10**9, delay_ps=US
    )
    kept = TransportSection(protocol="uet", connections="kept", pdc_idle=20 * US)
    ranks = 64
    inputs = [np.full((ranks, 64), rank, np.int32) for rank in range(ranks)]
    with Fabric(wide, clock="virtual", int_telemetry=False, transport=kept, faults=FaultsSection(loss=0.02)) as fabric:
        for _ in range(3):
            run = fabric.run(CollectiveRequest("alltoall", [each.reshape(-1) for each in inputs], "direct"))
            received = [np.asarray(output).reshape(ranks, -1) for output in run.buffers]
            assert all(np.array_equal(each, np.stack(inputs)[:, 0]) for each in received)
        found = totals(fabric)
    assert found["pdcs_opened"] > 2 * ranks * (ranks - 1)


def test_keys_that_do_not_go_together_are_refused() -> None:
    """Switches notify only senders of RoCEv2, credit in advance is part of receiver credits, and both say so."""
    for tree, words in (
        ({"congestion_control": "bolt", "service": "rod"}, "do not go with transport.protocol: uet"),
        ({"credit_advance": "4KiB"}, "credit_advance needs receiver_credits"),
        ({"receiver_credits": True, "credit_advance": "8GiB"}, "0 to 1073741824|1GiB"),
    ):
        with pytest.raises(BadInputError, match=words):
            parse_scenario({"clock": "virtual", "int": False, "transport": {"protocol": "uet", **tree}}, "s.yaml")
