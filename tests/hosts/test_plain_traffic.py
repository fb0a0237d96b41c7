"""Traffic of hosts that do not speak RoCE, end to end in virtual time."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, Literal

import finsy
import pytest
from click.testing import CliRunner
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from tests.refusals import refused
from weft import BadInputError, EnvironmentLacksError, Fabric
from weft.cli import weft
from weft.paths import FABRIC_P4, ROOT
from weft.quantities.units import PS_PER_MS
from weft.results.plain_hosts import PINGS, REPLAYS, ROUTES, SCRIPTS, UDP_FLOWS
from weft.results.results_file import read_results
from weft.results.run_result import RunResult
from weft.run.plain_hosts import script_task
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.topologies import leaf_spine
from weft.traffic.extensions import ClassSpec

FABRIC = {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": "10Gb/s", "delay": "1us"}
SCRIPT = """
import weft
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

class Sender(weft.ScriptedHost):
    def on_start(self):
        self.count = 0
        self.every(10_000_000, self.tick)

    def tick(self):
        self.count += 1
        self.report("ticks", self.count)
        if self.count == 3:
            self.finish()

class Wrong(weft.ScriptedHost):
    def on_start(self):
        self.after(5, self.fails)

    def fails(self):
        return 1 // 0

class Talks(weft.ScriptedHost):
    def on_start(self):
        to = IP(src=self.host.ipv4, dst=self.host.peers["h0"].ipv4) / UDP(dport=7777)
        self.every(10_000_000, lambda: self.send(Ether(src=self.host.mac, dst=self.host.gateway_mac) / to))

class TalksOverIpv6(weft.ScriptedHost):
    def on_start(self):
        to = IPv6(src=self.host.ipv6, dst=self.host.peers["h3"].ipv6) / UDP(dport=7777)
        self.every(10_000_000, lambda: self.send(Ether(src=self.host.mac, dst=self.host.gateway_mac) / to))

class Listens(weft.ScriptedHost):
    def __init__(self, most=1000):
        self.most = most
        self.heard = 0

    def on_packet(self, packet):
        if UDP in packet:
            self.heard += 1
            self.report("heard", self.heard)
            if self.heard == self.most:
                self.finish()

class Floats(weft.ScriptedHost):
    def on_start(self):
        kept = []
        self.report("kept", kept)
        kept.append(object())
        self.after(1e6, lambda: self.print("later"))

class Half(weft.ScriptedHost):
    def on_start(self):
        self.after(0.5, self.on_end)

class Late(weft.ScriptedHost):
    def on_start(self):
        self.after(100, lambda: self.send(bytes(60), at=99))

class AtOnce(weft.ScriptedHost):
    def on_start(self):
        self.after(0, self.on_start)

class Nothing(weft.ScriptedHost):
    def on_start(self):
        self.every(100, None)
"""


def run(traffic: list[dict[str, Any]], **options: Any) -> RunResult:
    return run_scenario(parse_scenario({"clock": "virtual", "fabric": FABRIC, "traffic": traffic} | options, "test"))


@cache
def ran(workers: int) -> RunResult:
    return run(
        [
            {"ping": "all", "count": 2},
            {"udp": ["h0->h3", "h1->h3"], "rate": "8Gb/s", "duration": "200us", "dscp": 26, "ecn": "ect0"},
            {"udp": ["h0->h3"], "rate": "8Gb/s", "duration": "1ms", "bursts": {"on": "50us", "off": "50us"}},
            {"together": [{"ping": ["h0->h3"]}, {"permutation": 65536}]},
            {
                "script": {
                    name: str(ROOT / "examples" / "plain_hosts.py") + f":{script}"
                    for name, script in (("h0", "Asker"), ("h3", "Answerer"))
                },
                "duration": "1ms",
            },
        ],
        workers=workers,
    )


def test_everyone_can_be_pinged() -> None:
    first = ran(1).of(PINGS)[:12]
    assert {(each.source, each.destination) for each in first} == {
        (f"h{a}", f"h{b}") for a in range(4) for b in range(4) if a != b
    }
    for each in first:
        assert each.answered == each.sent == 2
        assert each.round_trip_ps is not None
        # Without ARP: two links and a switch each way, or four and three.
        hops = 2 if each.source in ("h0", "h1") and each.destination in ("h0", "h1") else 4
        hops = 2 if {each.source, each.destination} <= {"h2", "h3"} else hops
        assert each.round_trip_ps.least > 2 * hops * 1_000_000


def test_two_sources_fill_a_port_and_are_marked() -> None:
    flows = ran(1).of(UDP_FLOWS)[:2]
    assert sum(each.goodput_bps for each in flows) < 10e9
    assert all(each.delay_ps is not None and each.delay_ps.largest > each.delay_ps.least for each in flows)
    assert sum(each.marked for each in flows) > 0
    assert all(each.received + each.lost == each.sent and each.duplicates == 0 for each in flows)


def test_results_do_not_depend_on_workers() -> None:
    one, two = ran(1), ran(2)
    for kind in (PINGS, UDP_FLOWS, SCRIPTS):
        assert one.of(kind) == two.of(kind)
    assert one.packet_conservation == two.packet_conservation


def test_every_packet_is_accounted_for() -> None:
    conservation = ran(1).packet_conservation
    assert conservation is not None
    assert conservation.missing.packets == 0


def test_the_second_run_is_as_the_first() -> None:
    item = {"udp": ["h0->h3", "h2->h1"], "rate": "4Gb/s", "duration": "100us"}
    first, second, third, fourth = run([item, item]).of(UDP_FLOWS)
    assert (first, second) == (third, fourth)


def test_pings_over_ipv6() -> None:
    (ping,) = run([{"ping": ["h0->h3"]}], ip_version=6).of(PINGS)
    assert ping.answered == 5


@pytest.mark.parametrize("version", [4, 6])
def test_data_does_not_keep_neighbours_answers_waiting(version: int) -> None:
    """The last host does not know its gateway, and data of class 3 fill its link."""
    busy = {"udp": ["h0->h3", "h2->h3"], "rate": "8Gb/s", "duration": "1ms", "dscp": 26}
    ping = {"ping": ["h1->h3"], "count": 1, "dscp": 48}
    (found,) = run([{"together": [busy, ping]}], ip_version=version).of(PINGS)
    assert found.answered == 1
    assert found.round_trip_ps is not None
    assert found.round_trip_ps.largest < 30_000_000


@pytest.mark.parametrize(
    ("version", "end", "leaf", "last_leaf"),
    [(4, "10.0.1.2", "10.0.0.254", "10.0.1.254"), (6, "fd00:0:1::2", "fd00::fe", "fd00:0:1::fe")],
)
def test_switches_report_what_expires(version: int, end: str, leaf: str, last_leaf: str) -> None:
    result = run([{"traceroute": ["h0->h3"], "timeout": "1ms"}], ip_version=version)
    (route,) = result.of(ROUTES)
    first, spine, last, host = (hop.responders for hop in route.hops)
    assert (first, last, host) == ((leaf,), (last_leaf,), (end,))
    assert spine[0].startswith("10.0.255." if version == 4 else "fd00:")
    assert result.drops == {}, "a report is the packet that has expired, made over"


def test_switches_whose_program_reports_nothing_are_silent_hops(tmp_path: Path) -> None:
    program = tmp_path / "silent.p4"
    text = FABRIC_P4.read_text(encoding="utf-8").replace('"include/', '"weft/')
    program.write_text(text.replace("time_exceeded.apply(hdr, meta, standard_metadata);", ""), encoding="utf-8")
    result = run([{"traceroute": ["h0->h3"], "timeout": "1ms"}], p4=str(program))
    (route,) = result.of(ROUTES)
    assert [hop.responders for hop in route.hops] == [(), (), (), ("10.0.1.2",)]
    assert route.reached
    assert [each for each in result.all_warnings if "switches have no table time_exceeded: traceroute" in each]


def test_reports_have_a_rate() -> None:
    result = run([{"traceroute": ["h0->h3"], "probes": 10, "timeout": "1ms"} for _ in range(12)])
    answered = sum(len(route.hops[0].round_trip_ps) for route in result.of(ROUTES))
    assert 100 <= answered <= 102, "a burst, and what a millisecond brings"
    assert result.drops == {"ttl_expired": 3 * (120 - answered)}


def test_a_capture_is_replayed_with_its_times(tmp_path: Path) -> None:
    frames = [Ether(dst="02:00:00:00:00:99") / IP(src="10.0.0.1", dst="10.0.1.2") / ICMP(seq=n) for n in range(3)]
    for number, frame in enumerate(frames):
        frame.time = 5 + number * 0.0001
    wrpcap(str(tmp_path / "three.pcap"), frames)
    item = {"replay": str(tmp_path / "three.pcap"), "host": "h0", "macs": "rewrite"}
    result = run([item | {"speed": 2}, item | {"rate": "1Gb/s"}, item | {"macs": "keep"}])
    own_times, at_rate, kept = result.of(REPLAYS)
    assert (own_times.frames, own_times.time_ps) == (3, 100_000_000)
    assert at_rate.time_ps == 2 * 42 * 8000
    assert kept.frames == 3
    assert result.packet_conservation is not None
    assert result.packet_conservation.missing.packets == 0


@pytest.mark.parametrize(
    ("speed", "problem"),
    [
        (1e-300, {"place": "test: traffic[0].speed", "valid": "1e-06 to 1,000,000"}),
        (0, {"place": "test: traffic[0].speed", "valid": "1e-06 to 1,000,000"}),
        (
            1e-6,
            {
                "place": "test: traffic[0].replay",
                "valid": "up to 1000 s; rate, or a larger speed, makes it shorter",
            },
        ),
    ],
)
def test_a_replay_is_no_slower_than_can_be_waited_for(tmp_path: Path, speed: float, problem: dict[str, str]) -> None:
    frames = [Ether(dst="02:00:00:00:00:99") / bytes(50) for _ in range(2)]
    for number, frame in enumerate(frames):
        frame.time = number * 2
    wrpcap(str(tmp_path / "two.pcap"), frames)
    with refused(BadInputError, **problem):
        run([{"replay": str(tmp_path / "two.pcap"), "host": "h0", "speed": speed}])


def test_several_scripts_of_a_host_hear_the_same(script: Path) -> None:
    """One that ends leaves the others what they hear."""
    first = {"script": {"h0": f"{script}:Listens"}, "duration": "1ms", "parameters": {"h0": {"most": 3}}}
    second = {"script": {"h0": f"{script}:Listens", "h1": f"{script}:Talks"}, "duration": "1ms"}
    result = run([{"together": [first, second]}])
    heard = [each.reports["heard"] for each in result.of(SCRIPTS) if each.host == "h0"]
    assert heard[0] == 3
    assert heard[1] > 90


def test_scripts_may_use_the_other_ip_version(script: Path) -> None:
    """Also where a fabric has come up with routes for Weft's own traffic only."""
    hosts = {"h0": f"{script}:TalksOverIpv6", "h3": f"{script}:Listens"}
    result = run([{"script": hosts, "duration": "1ms"}])
    assert result.of(SCRIPTS)[1].reports["heard"] > 90
    topology = leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=2)
    ipv6 = [finsy.P4TableEntry("ipv6_lpm")]
    with Fabric(topology, clock="virtual") as fabric:
        assert not fabric.read("p0l0", ipv6)
        specs = {host: ClassSpec(reference, {}) for host, reference in hosts.items()}
        (found,) = fabric.run_together([script_task(fabric, specs, PS_PER_MS)])
        assert found[1].reports["heard"] > 90
        assert fabric.read("p0l0", ipv6)


@pytest.mark.parametrize(("version", "other"), [(4, "ipv6_lpm"), (6, "ipv4_lpm")])
def test_switches_have_routes_of_the_ip_version_in_use(tmp_path: Path, version: Literal[4, 6], other: str) -> None:
    topology = leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=2)
    with Fabric(topology, clock="virtual", ip_version=version) as fabric:
        assert fabric.read("p0l0", [finsy.P4TableEntry(f"ipv{version}_lpm")])
        assert not fabric.read("p0l0", [finsy.P4TableEntry(other)])
    commands = tmp_path / "commands.txt"
    commands.write_text(f"table_dump {other}\n", encoding="utf-8")
    with Fabric(topology, clock="virtual", ip_version=version, commands={"p0l0": commands}) as fabric:
        assert fabric.read("p0l0", [finsy.P4TableEntry(other)])


def test_a_cut_capture_is_refused_with_its_byte(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    wrpcap(str(path), [Ether() / bytes(50)])
    path.write_bytes(path.read_bytes()[:-7])
    with refused(
        BadInputError,
        place="test: traffic[0].replay: cut.pcap, byte 24",
        problem="cut: 57 B are left of a frame",
    ):
        run([{"replay": str(path), "host": "h0"}])


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def test_a_script_has_timers_and_may_finish(script: Path) -> None:
    result = run([{"script": {"h1": f"{script}:Sender"}, "duration": "1s"}])
    (sender,) = result.of(SCRIPTS)
    assert (sender.script, sender.reports) == ("mine.py:Sender", {"ticks": 3})
    assert result.phases[-1].end_ps - result.phases[-1].start_ps == 30_000_000


@pytest.mark.parametrize(
    ("name", "problem", "line"),
    [
        ("Wrong", "ZeroDivisionError: integer division or modulo by zero", "return 1 // 0"),
        ("Half", "ValueError: 0.5 ps (valid: a whole number", "self.after(0.5, self.on_end)"),
        ("Late", "ValueError: at 99 ps, which is past: it is 100 ps", "send(bytes(60), at=99)"),
        (
            "AtOnce",
            "ValueError: more than 10,000 calls without a delay at 0 ps",
            "self.after(0, self.on_start)",
        ),
        ("Nothing", "TypeError: None cannot be called (valid: a function", "self.every(100, None)"),
    ],
)
def test_a_script_that_raises_ends_the_run_with_its_own_frames(
    script: Path, name: str, problem: str, line: str
) -> None:
    with pytest.raises(BadInputError) as raised:
        run([{"script": {"h1": f"{script}:{name}"}, "duration": "1ms"}])
    message = str(raised.value)
    assert message.startswith(f"{script}:")
    assert problem in message
    assert line in message
    assert "_on_wake" not in message


def test_a_script_may_write_times_as_floats_and_reports_copies(script: Path) -> None:
    (result,) = run([{"script": {"h1": f"{script}:Floats"}, "duration": "1ms"}]).of(SCRIPTS)
    assert [(line.time_ps, line.text) for line in result.printed] == [(10**6, "later")]
    assert result.reports == {"kept": []}


def test_a_capture_that_would_take_years_is_refused(tmp_path: Path) -> None:
    frames = [Ether() / bytes(46), Ether() / bytes(46)]
    frames[0].time, frames[1].time = 0, 1_700_000_000
    wrpcap(str(tmp_path / "years.pcap"), frames)
    with refused(
        BadInputError,
        place="test: traffic[0].replay",
        valid="up to 1000 s; rate, or a larger speed, makes it shorter",
    ):
        run([{"replay": str(tmp_path / "years.pcap"), "host": "h0"}])


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ({"ping": ["h0->h9"]}, {"place": "test: traffic[0].ping[0]", "problem": "no host 'h9'"}),
        ({"ping": ["h0->h0"]}, {"place": "test: traffic[0].ping[0]", "valid": "two hosts"}),
        ({"ping": []}, {"place": "test: traffic[0].ping", "valid": "1 to 10000"}),
        ({"script": {"h0": "nowhere.py:X"}, "duration": "1us"}, {"problem": "py: cannot be read"}),
        (
            {"udp": "all", "rate": "1Gb/s", "duration": "1us", "port": 4785},
            {"place": "test: traffic[0].port", "valid": "no port is 4791 or above 49151"},
        ),
        (
            {"udp": ["h0->h1"], "rate": "100Gb/s", "duration": "100s"},
            {"place": "test: traffic[0].duration", "valid": "up to 100,000,000"},
        ),
        (
            {"udp": ["h0->h1"] * 2, "rate": "1Gb/s", "duration": "1us", "port": 49151},
            {"place": "test: traffic[0].port", "valid": "no port is 4791 or above 49151"},
        ),
        (
            {"udp": ["h0->h1"], "rate": "8Mb/s", "duration": "50ms", "bursts": {"on": "1ps", "off": "1ps"}},
            {"place": "test: traffic[0].bursts", "valid": "up to 10,000,000"},
        ),
        (
            {
                "udp": ["h0->h1"],
                "rate": "8Mb/s",
                "duration": "1s",
                "bursts": {"distribution": "pareto", "on": "1ms", "off": "1ms", "shape": 1.000001},
            },
            {"place": "test: traffic[0].bursts", "valid": "up to 10,000,000"},
        ),
        (
            {"udp": ["h0->h1"], "rate": "1Gb/s", "duration": "1us", "packet": 9001},
            {"place": "test: traffic[0].packet", "valid": "at most 9000 B, which is link_mtu"},
        ),
        (
            {"ping": ["h0->h1"] * 200, "count": 65535},
            {"place": "test: traffic[0].count", "valid": "up to 10,000,000"},
        ),
        (
            {"traceroute": ["h0->h1"] * 300, "hops": 255, "probes": 1},
            {
                "place": "test: traffic[0].hops",
                "valid": "up to 218; a host has 65535 identifiers of echo requests",
            },
        ),
        (
            {"script": {"h0": "a.py:X"}, "parameters": {"h1": {}}, "duration": "1us"},
            {"place": "test: traffic[0].parameters", "valid": "h0"},
        ),
    ],
)
def test_what_cannot_be_is_refused(item: dict[str, Any], problem: dict[str, str]) -> None:
    with refused(BadInputError, **problem):
        run([item])


def test_the_real_clock_refuses() -> None:
    for traffic in ({"ping": "all"}, {"together": [{"ping": "all"}, {"permutation": 64}]}):
        with pytest.raises(EnvironmentLacksError, match="hosts of the real clock have their kernel's IP"):
            run([traffic], clock="real")


def test_the_page_shows_what_its_example_prints(tmp_path: Path) -> None:
    out = tmp_path / "out"
    scenario = ROOT / "examples" / "plain_hosts.yaml"
    done = CliRunner().invoke(weft, ["run", str(scenario), "--out", str(out)])
    assert done.exit_code == 0, done.output
    page = (ROOT / "docs" / "plain-hosts.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    shown = [line for language, block in blocks if not language for line in block.splitlines()]
    (in_page,) = [block for language, block in blocks if language == "yaml"]
    assert in_page in scenario.read_text(encoding="utf-8")
    printed = {line.rstrip() for line in done.output.splitlines()}
    assert len(shown) > 10
    assert [line for line in shown if line.rstrip() not in printed] == []
    assert read_results(out / "results.json").of(SCRIPTS)[0].reports["answers"] == 3
    assert CliRunner().invoke(weft, ["report", str(out)]).exit_code == 0


def test_what_hosts_cannot_send_is_counted_and_conserved() -> None:
    """Switches with a program of a user's do not answer ARP; three requests of a host are all that leaves it."""
    program = ROOT / "tests" / "dropin" / "programs" / "basic_forward.p4"
    result = run([{"udp": ["h0->h3"], "rate": "5Gb/s", "duration": "3ms"}], p4=str(program))
    (found,) = result.of(UDP_FLOWS)
    assert (found.sent, found.received, found.loss, found.ok) == (0, 0, 1, False)
    assert found.not_sent == found.lost == 1239
    assert found.goodput_bps == 0
    account = result.packet_conservation
    assert account is not None
    ends = 12
    assert account.entered["unsent"].packets == account.dropped["ip unresolved"].packets == found.lost + ends
    assert result.drops["ip unresolved"] == found.lost + ends
    assert account.entered["sent"].packets == 3, "questions of ARP"
    (lost,) = (each for each in result.losses if each.node == "h0")
    assert (lost.reason, lost.packets) == ("ip unresolved", found.lost + ends)


def test_all_drops_are_named() -> None:
    """What ended without arriving is in `drops` or absorbed, whatever dropped it."""
    udp = {"udp": ["h0->h3", "h1->h3"], "rate": "8Gb/s", "duration": "1ms"}
    result = run([udp, {"traceroute": ["h0->h3"], "timeout": "1ms"}, {"ping": "all", "count": 2}])
    assert result.packet_conservation is not None
    ended = sum(each.packets for each in result.packet_conservation.dropped.values())
    assert sum(result.drops.values()) + sum(result.absorbed.values()) == ended > 0
