"""INT-MD in runs: reports say what switches' traces say, on the path that packets took; what is missing is counted.

WEFT_SCAPY_INT names the file scapy/contrib/int.py of secdev/scapy's pull request 4230,
WEFT_TRANSPARENT_SECURITY_CLONE a clone of cablelabs/transparent-security: parsers of these formats, not Weft's.
"""

from __future__ import annotations

import csv
import importlib.util
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import raw
from scapy.utils import RawPcapNgReader, RawPcapReader

from tests.refusals import refused
from weft.cli import weft
from weft.compiler import compile_file
from weft.errors import BadInputError
from weft.paths import FABRIC_P4, ROOT
from weft.results.run_result import RunResult
from weft.run.packet_traces import PacketTraces, TracedPacket
from weft.run.runner import Captures, run_scenario
from weft.run.spec import run_spec
from weft.scenario import parse_scenario
from weft.switch.trace.events import EgressStarted, Received
from weft.traffic import collector
from weft.traffic.int_md_format import decoded, decoded_group, flow_and_stack
from weft.wire.headers.int_md import INT_MD_UDP_PORT

TWO_TIERS = {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": "10Gb/s"}
THREE_TIERS = {"kind": "fat_tree", "planes": 1, "k": 4, "host_rate": "10Gb/s"}
SMALL = {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 1}
COLLECTOR_PORT = 32766
CELL_BYTES = 80


def scenario(**keys):
    given = {
        "clock": "virtual",
        "fabric": SMALL,
        "int": False,
        "telemetry": {"mode": "int-md", "collector": "h0"},
        "traffic": [{"incast": "h1", "bytes_per_sender": "16KiB"}],
    }
    return parse_scenario(given | keys)


def rows_of(result: RunResult, directory: Path) -> list[dict[str, str]]:
    directory.mkdir(exist_ok=True)
    result.save(directory)
    with (directory / "telemetry.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def ends_of(spec, switch: str) -> dict[int, tuple[str, int]]:
    """What each port of a switch leads to: a node, and its port there."""
    return {port.number: (port.peer.node, port.peer.port) for port in spec.fabric.switch(switch).ports}


@pytest.mark.parametrize(
    ("fabric", "traffic", "switches_on_longest"),
    [
        (TWO_TIERS, {"incast": "h3", "bytes_per_sender": "32KiB"}, 3),
        pytest.param(THREE_TIERS, {"incast": "h15", "bytes_per_sender": "4KiB"}, 5, marks=pytest.mark.slow),
    ],
    ids=["two tiers", "three tiers"],
)
@pytest.mark.parametrize("ip_version", [4, 6])
def test_reports_say_what_the_switches_traces_say(tmp_path, fabric, traffic, switches_on_longest, ip_version) -> None:
    spec = run_spec(scenario(fabric=fabric, traffic=[traffic], ip_version=ip_version))
    packets: list[TracedPacket] = []
    traces = PacketTraces([switch.name for switch in spec.fabric.switches], packets.append, 10**6)
    result = run_scenario(spec, attached=[traces])
    # By switch, port and time of arrival: port and time of departure, and the depth left behind.
    passed: dict[tuple[str, int, int], tuple[int, int, int]] = {}
    for packet in packets:
        (received,) = (each for each in packet.trace.root.events if isinstance(each, Received))
        left = [each for each in packet.trace.root.events if isinstance(each, EgressStarted)]
        if left:
            found = (left[0].port, left[0].timestamp, left[0].dequeue_depth)
            passed[packet.switch, received.port, received.timestamp] = found
    rows = rows_of(result, tmp_path)
    assert rows
    paths: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        ingress_ns = int(row["ingress_ns"])
        port, egress_ns, depth = passed[row["switch"], int(row["ingress_port"]), ingress_ns]
        assert (int(row["egress_port"]), int(row["egress_ns"])) == (port, egress_ns)
        assert int(row["latency_ns"]) == egress_ns - ingress_ns
        assert int(row["queue_bytes"]) == depth * CELL_BYTES
        paths.setdefault((row["sink"], row["sequence"]), []).append(row)
    # Each hop's port leads to the next hop, from the sender to the receiver.
    for hops in paths.values():
        assert [int(row["hop"]) for row in hops] == list(range(len(hops)))
        at = None
        for row in hops:
            ends = ends_of(spec, row["switch"])
            if at is None:
                assert ends[int(row["ingress_port"])][0] == row["source"]
            else:
                assert at == (row["switch"], int(row["ingress_port"]))
            at = ends[int(row["egress_port"])]
        assert at is not None
        assert at[0] == hops[-1]["destination"]
        assert row["sink"] == hops[-1]["switch"]
    assert max(len(hops) for hops in paths.values()) == switches_on_longest
    # No report is missing, and results.json sums up the rows.
    assert sum(each.received for each in result.telemetry_reports) == len(paths)
    assert all(each.lost == 0 and each.sent == each.received for each in result.telemetry_reports)
    largest = max(int(row["queue_bytes"]) for row in rows)
    assert max(each.largest_queue_bytes for each in result.telemetry_hops) == largest
    assert largest > 0
    assert sum(each.reports for each in result.telemetry_hops) == len(rows)
    assert result.ok
    assert result.as_dict()["made_by"]["telemetry"]["collector"] == "h0"


def test_every_packet_of_hosts_has_a_report_and_arrives_whole() -> None:
    result = run_scenario(scenario())
    found = result.packet_conservation
    assert found is not None
    sent = found.entered["sent"].packets
    assert sum(each.sent for each in result.telemetry_reports) == found.entered["cloned"].packets == sent
    assert found.left["delivered"].packets == 2 * sent
    assert result.retransmissions == 0
    assert result.drops == {}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_is_the_same_whatever_the_threads(tmp_path, workers: int) -> None:
    (tmp_path / "a").mkdir()
    one = run_scenario(scenario(fabric=TWO_TIERS)).save(tmp_path / "a").read_text(encoding="utf-8")
    (tmp_path / "b").mkdir()
    spec = scenario(fabric=TWO_TIERS, workers=workers)
    assert run_scenario(spec).save(tmp_path / "b").read_text(encoding="utf-8") == one


def test_one_packet_of_ten_of_one_host_is_watched(tmp_path) -> None:
    """By h1 sends 16 data packets and h2's answers are not watched."""
    watch = [{"from": "h1", "to": "h3", "class": 3, "one_of": 10}]
    traffic = [{"incast": "h3", "bytes_per_sender": "64KiB"}]
    telemetry = {"mode": "int-md", "collector": "h0", "watch": watch, "metadata": ["node", "queue"]}
    result = run_scenario(scenario(fabric=TWO_TIERS, traffic=traffic, telemetry=telemetry))
    rows = rows_of(result, tmp_path)
    assert {(row["source"], row["destination"]) for row in rows} == {("h1", "h3")}
    # 64 packets of data: the 1st, 11th … 61st.
    first = min(int(row["psn"]) for row in rows)
    assert sorted({int(row["psn"]) - first for row in rows}) == [0, 10, 20, 30, 40, 50, 60]
    assert {row["latency_ns"] for row in rows} == {"-1"}
    assert [each.mean_latency_ns for each in result.telemetry_hops] == [None] * 3


def test_the_first_entry_that_matches_counts() -> None:
    watch = [{"from": "h0", "one_of": 16}, {"one_of": 1}]
    telemetry = {"mode": "int-md", "collector": "h0", "watch": watch}
    result = run_scenario(scenario(telemetry=telemetry))
    of_data = [each for each in result.telemetry_hops if each.source == "h0"]
    of_answers = [each for each in result.telemetry_hops if each.source == "h1"]
    assert {each.reports for each in of_data} == {1}
    assert of_answers
    assert all(each.reports >= 1 for each in of_answers)


def test_lost_reports_are_counted() -> None:
    faults = {"links": [{"link": "p0l1->p0s0", "loss": 0.2}]}
    # h0 collects, and everything to it that h1's switch sends is lost now and then: answers and reports.
    result = run_scenario(scenario(faults=faults, traffic=[{"incast": "h1", "bytes_per_sender": "64KiB"}]))
    of_sinks = {each.sink: each for each in result.telemetry_reports}
    sink = of_sinks["p0l1"]
    assert sink.lost > 0
    assert sink.received + sink.lost == sink.sent
    assert of_sinks["p0l0"].lost == 0


def test_reports_beyond_what_the_collector_keeps_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run_scenario(scenario())
    monkeypatch.setattr(collector, "MAX_BYTES", 1000)
    cut = run_scenario(scenario())
    received = sum(each.received for each in cut.telemetry_reports)
    assert 0 < received <= 1000 // 100, "reports have 100 bytes and more"
    missing = sum(each.received for each in whole.telemetry_reports) - received
    assert sum(each.lost for each in cut.telemetry_reports) == cut.rows_lost == missing
    full = "came after the collector was full (1,000,000 datagrams or 0 MiB) and are not in the results"
    assert cut.warnings == [f"telemetry: {missing} datagrams {full}"]


def test_links_without_room_show_in_reports() -> None:
    """UDP of hosts has a checksum, so 24 bytes of headers and 32 bytes of each switch's metadata."""

    def udp(packet: int) -> RunResult:
        traffic = [{"udp": ["h0->h1"], "rate": "1Gb/s", "packet": packet, "duration": "20us"}]
        return run_scenario(scenario(link_mtu=1280, traffic=traffic, telemetry=telemetry))

    telemetry = {"mode": "int-md", "collector": "h0", "watch": [{"from": "h0"}]}
    whole = udp(1280 - 24 - 64)
    hops = Counter(each.hop for each in whole.telemetry_hops if each.source_port)
    assert hops[2] > 0
    assert all(each.mtu_exceeded == 0 for each in whole.telemetry_reports)
    one = udp(1280 - 24 - 32)
    assert sum(each.mtu_exceeded for each in one.telemetry_reports) > 0
    assert {each.path for each in one.telemetry_hops if " p0s0 " not in f" {each.path} "} == {"p0l0 p0l1"}
    none = udp(1280 - 23)
    assert all(each.mtu_exceeded == 0 for each in none.telemetry_reports)
    (source,) = (each for each in none.telemetry_reports if each.not_started)
    assert (source.sink, source.received) == ("p0l0", 0)
    (warning,) = none.warnings
    expected = f"{source.not_started} watched packets had no room for INT (link_mtu) and are not in the results"
    assert warning == f"telemetry: {expected}"
    assert all(each.not_started == 0 for each in (*whole.telemetry_reports, *one.telemetry_reports))
    assert whole.warnings == one.warnings == []


def test_items_of_the_watchlist_that_match_nothing_are_named() -> None:
    def run(*watch: dict[str, object]) -> RunResult:
        return run_scenario(scenario(telemetry={"mode": "int-md", "collector": "h0", "watch": list(watch)}))

    none = run({"from": "h0", "class": 4, "one_of": 10})
    assert none.telemetry_reports == []
    place = "telemetry.watch[0] ({from: h0, class: 4, one_of: 10})"
    assert none.warnings == [f"telemetry reports: none. No packet matched {place}"]
    neither = run({"class": 4}, {"protocol": "tcp"})
    places = "telemetry.watch[0] ({class: 4}) or telemetry.watch[1] ({protocol: tcp})"
    assert neither.warnings == [f"telemetry reports: none. No packet matched {places}"]
    some = run({"to": "h1"}, {"to": "h1", "class": 3})
    assert some.telemetry_reports
    place = "telemetry.watch[1] ({to: h1, class: 3})"
    assert some.warnings == [f"telemetry: no packet that earlier items do not match matched {place}"]
    assert run({"to": "h1"}, {}).warnings == []


def test_too_many_hops_show_in_reports() -> None:
    telemetry = {"mode": "int-md", "collector": "h0", "hops": 2, "watch": [{"from": "h0"}]}
    result = run_scenario(scenario(telemetry=telemetry))
    assert {each.path for each in result.telemetry_hops} == {"p0l0 p0s0"}
    (sink,) = result.telemetry_reports
    assert sink.hops_exceeded == sink.received


def test_tcp_is_watched() -> None:
    telemetry = {"mode": "int-md", "collector": "h0", "watch": [{"protocol": "tcp"}]}
    result = run_scenario(scenario(traffic=[{"tcp": [{"flow": "h0->h1", "size": "64KiB"}]}], telemetry=telemetry))
    assert {each.protocol for each in result.telemetry_hops} == {6}
    assert {each.path for each in result.telemetry_hops} == {"p0l0 p0s0 p0l1", "p0l1 p0s0 p0l0"}
    assert result.ok
    # Its data fill the links' MTU.
    assert sum(each.not_started for each in result.telemetry_reports) > 0
    assert "no room for INT" in " ".join(result.warnings)


def test_hpcc_goes_on_beside_int_md() -> None:
    transport = {"congestion_control": "hpcc"}
    result = run_scenario(scenario(**{"int": True}, transport=transport, fabric=TWO_TIERS))
    assert result.int_paths
    assert result.telemetry_hops
    assert all(each.lost == 0 for each in result.telemetry_reports)


def test_reductions_in_the_network_are_not_watched() -> None:
    traffic = [{"collective": "allreduce", "algorithms": ["in-network"], "sizes": ["16KiB"]}]
    result = run_scenario(scenario(traffic=traffic))
    assert result.ok
    assert result.telemetry_reports == []
    assert result.warnings == ["telemetry reports: none. No packet matched telemetry.watch[0] (every packet)"]


def test_a_failure_of_a_link_moves_reports() -> None:
    """Reports are routed by the switches: a link that fails costs what is on it, and the next ones go another way."""
    events = [{"at": "20us", "link": "p0l1<->p0s0", "state": "down"}]
    traffic = [{"incast": "h3", "bytes_per_sender": "256KiB"}]
    result = run_scenario(scenario(fabric=TWO_TIERS, traffic=traffic, events=events))
    late = [each for each in result.telemetry_hops if "p0s1" in each.path]
    assert late
    assert result.ok


def test_datagrams_that_are_no_reports_are_refused_and_counted() -> None:
    traffic = [{"udp": ["h1->h0"], "rate": "1Gb/s", "duration": "20us", "port": COLLECTOR_PORT - 1}]
    telemetry = {"mode": "int-md", "collector": "h0", "port": COLLECTOR_PORT - 1, "watch": [{"protocol": "tcp"}]}
    with pytest.raises(Exception, match="taken"):
        run_scenario(scenario(traffic=traffic, telemetry=telemetry))


@pytest.mark.parametrize(
    ("telemetry", "place", "problem", "valid"),
    [
        ({"mode": "none", "collector": "h0"}, "collector", "no telemetry with mode: none", "mode: int-md"),
        ({"mode": "int-md", "collector": None}, "collector", "needs a host", ""),
        ({"collector": "h9"}, "collector", "no host 'h9'", ""),
        ({"port": 4791}, "port", "RoCEv2's", ""),
        ({"watch": []}, "watch", "[]", "one item or more"),
        ({"watch": [{"to": "x"}]}, "watch[0].to", "no host 'x'", ""),
        ({"metadata": ["queue"]}, "metadata", "queue", "node, and others once each"),
        ({"hops": 40}, "hops", "8 words", "at most 31: a stack has up to 252 words"),
    ],
)
def test_a_section_that_makes_no_sense_is_refused(telemetry, place: str, problem: str, valid: str) -> None:
    given = {"mode": "int-md", "collector": "h0"} | telemetry
    with refused(BadInputError, place=f"scenario: telemetry.{place}", problem=problem, valid=valid):
        run_spec(scenario(telemetry={key: value for key, value in given.items() if value is not None}))


def test_segments_and_cut_through_do_not_go_with_it() -> None:
    with refused(BadInputError, place="scenario: fidelity.segment", problem="segments do not go with telemetry"):
        run_spec(scenario(fidelity={"segment": "64KiB"}))
    with refused(BadInputError, place="scenario: telemetry.mode", problem="packets grow"):
        run_spec(scenario(switching={"mode": "cut-through"}))


def test_without_telemetry_the_program_has_none_of_it() -> None:
    assert "int_md" not in compile_file(FABRIC_P4).json_text()
    assert "telemetry" not in run_scenario(scenario(telemetry={})).as_dict()["made_by"]


@pytest.mark.mininet
def test_reports_reach_a_kernels_socket_under_the_real_clock() -> None:
    fabric = SMALL | {"host_rate": "1Gb/s"}
    result = run_scenario(scenario(clock="real", dilation=3000, fabric=fabric))
    assert {each.path for each in result.telemetry_hops} == {"p0l0 p0s0 p0l1", "p0l1 p0s0 p0l0"}
    assert all(each.received == each.sent > 0 for each in result.telemetry_reports)
    assert result.ok


def test_the_page_shows_what_the_example_prints(tmp_path: Path) -> None:
    example = ROOT / "examples" / "telemetry.yaml"
    done = CliRunner().invoke(weft, ["run", "--out", str(tmp_path), str(example)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    begin = lines.index("telemetry reports")
    end = next(number for number, line in enumerate(lines) if line.startswith("retransmitted packets"))
    page = (ROOT / "docs" / "telemetry.md").read_text(encoding="utf-8")
    assert "\n".join(lines[begin:end]).strip() in page
    # The page's scenario is the example's.
    (shown,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    given = [line.split("#")[0].strip() for line in example.read_text(encoding="utf-8").splitlines()]
    assert {line.split("#")[0].strip() for line in shown.splitlines()} <= set(given)


# --- frames on links, read by others


@pytest.fixture(scope="module")
def captured(tmp_path_factory) -> Path:
    """Frames of the link from the first switch to the next, and of the collector's NIC."""
    directory = tmp_path_factory.mktemp("captured")
    observe = {"captures": ["p0l0:2", "p0s0:2"]}
    spec = run_spec(scenario(observe=observe))
    run_scenario(spec, directory=directory, captures=Captures(directory))
    return directory


def frames(path: Path) -> list[bytes]:
    reader = RawPcapNgReader if path.suffix == ".pcapng" else RawPcapReader
    return [data for data, _ in reader(str(path))]


def with_int(path: Path) -> list[bytes]:
    found = [data for data in frames(path) if Ether(data)[UDP].dport == INT_MD_UDP_PORT]
    assert found
    return found


def reports_in(path: Path) -> list[bytes]:
    found = [raw(Ether(data)[UDP].payload) for data in frames(path) if Ether(data)[UDP].dport == COLLECTOR_PORT]
    assert found
    return found


def test_a_plain_tshark_reads_headers_and_checksums_of_all_frames(captured: Path) -> None:
    """tshark 4.0 has no dissector of INT-MD: it shows the UDP datagram. No frame is opaque or malformed."""
    for name in ("p0l0-2.pcapng", "p0s0-2.pcapng", "h0-plane0.pcap"):
        command = ["tshark", "-r", captured / name, "-o", "ip.check_checksum:TRUE", "-T", "fields"]
        command += ["-e", "frame.protocols", "-e", "ip.checksum.status", "-e", "_ws.malformed", "-e", "udp.dstport"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        ports = set()
        for line in said:
            names, checksum, malformed, port = line.split("\t")
            assert {"ip", "udp"} <= set(names.split(":"))
            assert checksum.split(",")[0] == "1"
            assert malformed == ""
            ports.add(port.split(",")[0])
        assert str(COLLECTOR_PORT) in ports or str(INT_MD_UDP_PORT) in ports


def foreign_int() -> ModuleType:
    file = os.environ.get("WEFT_SCAPY_INT", "")
    spec = importlib.util.spec_from_file_location("foreign_int", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


needs_scapy_int = pytest.mark.skipif(
    not os.environ.get("WEFT_SCAPY_INT"), reason="WEFT_SCAPY_INT names no scapy/contrib/int.py of secdev/scapy's #4230"
)


def read_by_scapy(shim) -> list[dict[str, int]]:
    """Hops as the foreign layer reads them, the first switch first."""
    names = {"node_id", "igr_l1_intf", "egr_l1_intf", "latency", "que_id", "que_occupy", "igr_ts", "egr_ts"}
    return [{name: getattr(hop, name) for name in names} for hop in reversed(shim.metadata.meta_hops)]


def read_by_weft(stack) -> list[dict[str, int]]:
    names = {
        "node_id": "node_id",
        "igr_l1_intf": "ingress",
        "egr_l1_intf": "egress",
        "latency": "latency_ns",
        "que_id": "queue_id",
        "que_occupy": "queue_bytes",
        "igr_ts": "ingress_ns",
        "egr_ts": "egress_ns",
    }
    return [{theirs: hop[ours] for theirs, ours in names.items()} for hop in stack.hops]


@needs_scapy_int
@pytest.mark.parametrize(("name", "hops"), [("p0l0-2.pcapng", 1), ("p0s0-2.pcapng", 2)])
def test_scapys_layer_reads_stacks_on_links(captured: Path, name: str, hops: int) -> None:
    module = foreign_int()
    counts = Counter()
    for data in with_int(captured / name):
        payload = raw(IP(raw(Ether(data).payload))[UDP].payload)
        shim, (stack, rest) = module.INTShimTcpUdp(payload), decoded(payload)
        assert (shim.type, shim.npt, shim.l4_dport) == (1, 1, 4791)
        assert (shim.metadata.version, shim.metadata.hop_len) == (2, 8)
        assert shim.metadata.hop_left == stack.remaining_hops
        assert read_by_scapy(shim) == read_by_weft(stack)
        assert raw(shim.payload) == rest
        counts[len(stack.hops)] += 1
    assert counts[hops] > 0


@pytest.mark.skipif(
    not os.environ.get("WEFT_TRANSPARENT_SECURITY_CLONE"),
    reason="WEFT_TRANSPARENT_SECURITY_CLONE names no clone of cablelabs/transparent-security",
)
@needs_scapy_int
def test_foreign_parsers_read_reports(captured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report's headers by transparent-security's, which knows no type but INT; the stack in it by Scapy's layer."""
    monkeypatch.syspath_prepend(os.environ["WEFT_TRANSPARENT_SECURITY_CLONE"])
    for name in [name for name in sys.modules if name.split(".")[0] == "trans_sec"]:
        monkeypatch.delitem(sys.modules, name)
    layers = importlib.import_module("trans_sec.packet.inspect_layer")
    module = foreign_int()
    for data in reports_in(captured / "h0-plane0.pcap"):
        group = decoded_group(data)
        (report,) = group.reports
        theirs = layers.TelemetryReport(data)
        assert (theirs.ver, theirs.hw_id, theirs.sequence_no, theirs.node_id) == (2, 0, group.sequence, group.node_id)
        assert (theirs.rep_type, theirs.in_type, theirs.md_len) == (0, 4, 0)
        assert theirs.rpt_len * 4 == len(report.inner) == len(data) - 12
        assert (theirs.d, theirs.q, theirs.f, theirs.i) == (0, 0, 1, 0)
        inner = IP(report.inner)
        assert inner[UDP].dport == INT_MD_UDP_PORT
        shim = module.INTShimTcpUdp(raw(inner[UDP].payload))
        _, stack = flow_and_stack(report)
        assert read_by_scapy(shim) == read_by_weft(stack)
        assert len(stack.hops) == 3
