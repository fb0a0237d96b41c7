"""Traces of switches in a run of virtual time: which packets they show, and that the run is the same without."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.refusals import refused
from weft.cli import weft
from weft.clocks.virtual.loop import RunEndedEarlyError
from weft.errors import BadInputError, CheckFailedError, EnvironmentLacksError
from weft.report.coverage import read_coverage
from weft.run.packet_traces import PacketTraces, TracedPacket
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import Change, load_scenario
from weft.switch.debug.conditions import check_syntax
from weft.switch.trace.events import Sent, Step

INCAST = Path(__file__).resolve().parents[2] / "examples" / "debugging" / "incast.yaml"


def results(path: Path, workers: int, traces: PacketTraces | None) -> str:
    """Run the incast; return results.json."""
    spec = run_spec(load_scenario(INCAST, [Change("workers", workers, "workers")]))
    result = run_scenario(spec, attached=[] if traces is None else [traces])
    return result.save(path).read_text(encoding="utf-8")


def traced(**asked: object) -> tuple[list[TracedPacket], PacketTraces]:
    """Run the incast with a trace of its first leaf."""
    packets: list[TracedPacket] = []
    traces = PacketTraces(["p0l0"], packets.append, 10_000, **asked)  # type: ignore[arg-type]
    run_scenario(run_spec(load_scenario(INCAST)), attached=[traces])
    return packets, traces


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_is_the_same_with_a_trace(tmp_path: Path, workers: int) -> None:
    plain = results(tmp_path / "plain", workers, None)
    switches = ["p0l0", "p0l1", "p0s0"]
    some = PacketTraces(switches, lambda _: None, 20, when="drop or ipv4.ecn == 3")
    all_of_them = PacketTraces(switches, lambda _: None, 10_000)
    assert results(tmp_path / "all", workers, all_of_them) == plain
    assert results(tmp_path / "some", workers, some) == plain
    assert some.others > 0


def test_a_scenario_that_records_into_files_can_be_traced() -> None:
    asked = ("--set", "observe.captures=[p0l0:1]", "--set", "observe.state_at=[1us]")
    assert weft_trace(INCAST, "--switch", "p0l0", *asked) == weft_trace(INCAST, "--switch", "p0l0")


def test_every_packet_of_a_switch_is_shown_with_its_time() -> None:
    packets, traces = traced()
    assert len(packets) == 216, "the run's packets, all of which pass this leaf"
    assert (traces.others, traces.missed) == (0, 0)
    assert all(packet.trace.root.ended for packet in packets)
    assert all(any(isinstance(event, Step) for event in packet.trace.root.events) for packet in packets)
    late, _ = traced(during_ps=(5 * 10**6, 10 * 10**6))
    assert sorted(each.received_ps for each in late) == sorted(
        each.received_ps for each in packets if 5 * 10**6 <= each.received_ps < 10 * 10**6
    )


def test_conditions_see_the_queue() -> None:
    packets, _ = traced(when="out_port == 1 and deq_qdepth > 200")
    everything, _ = traced(when="out_port == 1")
    assert 0 < len(packets) < len(everything)
    assert all(isinstance(packet.trace.root.events[-1], Sent) for packet in everything)


def weft_trace(*arguments: object) -> str:
    result = CliRunner().invoke(weft, ["trace", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command_shows_so_many_packets_of_several_switches() -> None:
    output = weft_trace(INCAST, "--switch", "p0l0", "--switch", "p0l1", "-n", 3, "--json", "--set", "seed=3")
    events = [json.loads(line) for line in output.splitlines()]
    assert sum(event["event"] == "received" for event in events) == 3


def test_a_network_of_the_user_s_own_is_run_and_a_switch_given_twice_is_one() -> None:
    network = INCAST.parents[1] / "own_network" / "topology.json"
    output = weft_trace(network, "--switch", "s1", "--switch", "s1", "--when", "out_port == 3")
    assert output.startswith("784 ns, s1: packet 1: in by port 1, 98 bytes\n")
    assert "out by port 3, 98 bytes" in output


def test_digests_are_a_condition() -> None:
    scenario = INCAST.parents[1] / "learning_switch" / "learning.yaml"
    output = weft_trace(scenario, "--set", "clock=virtual", "--switch", "p0l0", "--when", "digest", "-n", 50)
    packets = output.count(": packet ")
    assert packets > 1
    assert output.count("digest learned_t to the controller") == packets


def test_a_scenario_s_switches_are_named_before_anything_is_built() -> None:
    result = CliRunner().invoke(weft, ["trace", str(INCAST)])
    said = " ".join(result.output.split())
    assert "the switch to show packets of (valid: p0l0, p0l1, p0s0, p0s1, a pattern, all)" in said
    result = CliRunner().invoke(weft, ["trace", str(INCAST), "--switch", "p9"])
    assert "--switch: unknown switch 'p9'" in str(result.exception)
    assert "building" not in result.output


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["--switch", "p9l9"], BadInputError, {"place": "--switch", "valid": "p0l0, p0l1, p0s0, p0s1"}),
        (
            ["--switch", "p0l0", "--when", "udpp"],
            BadInputError,
            {"place": "--when", "problem": "column 1: unknown name 'udpp'"},
        ),
        (
            ["--switch", "p0l0", "--set", "clock=real"],
            EnvironmentLacksError,
            {"problem": "--switch is for runs of the"},
        ),
        (
            ["--switch", "p0l0", "--from", "2us", "--until", "1us"],
            BadInputError,
            {"problem": "--from is not before"},
        ),
        (
            ["--switch", "p0l0", "--from", "1s"],
            CheckFailedError,
            {"problem": "no packet came to p0l0 in that"},
        ),
        (
            ["--switch", "p0l0", "--when", "out_port == 500"],
            CheckFailedError,
            {"problem": "216 packets did not"},
        ),
    ],
)
def test_what_cannot_be_shown_is_refused(arguments: list[str], error: type[Exception], message: dict[str, str]) -> None:
    with refused(error, **message):
        weft_trace(INCAST, *arguments)


@pytest.mark.parametrize(
    ("when", "problem"),
    [
        ("", "column 1: the condition is empty"),
        ("out_port = 2", "column 10: unexpected '='"),
        ("drop and", "column 9: a field, a number or a condition is missing before the end"),
        ("1 == 2", "column 1: '1' and '2' are both numbers"),
        ("table ingress.acl hit drop", "column 23: 'drop' after the condition's end"),
    ],
)
def test_a_condition_is_parsed_before_anything_is_compiled(
    monkeypatch: pytest.MonkeyPatch, when: str, problem: str
) -> None:
    def compiled(*_arguments: object) -> None:
        raise AssertionError("the scenario was read before the condition")

    monkeypatch.setattr("weft.commands.tracing_runs.load_scenario_or_network", compiled)
    with refused(BadInputError, place="--when", problem=problem):
        weft_trace(INCAST, "--switch", "p0l0", "--when", when)


@pytest.mark.parametrize(
    "when",
    [
        "udp",
        "udp.isValid()",
        "not ipv4.isValid() and (drop or digest)",
        "ipv4.ttl == 63 || !(port == 1)",
        "(ipv4.ecn & 1) != 0",
        "drop tail",
        'table ingress.acl entry "10.0.1.0/24"',
        "table ingress.acl miss and action set_port and state start",
        "parser_error == error.NoError",
        "ipv4.dst == 10.0.1.0/24",
    ],
)
def test_syntax_is_checked_without_names(when: str) -> None:
    check_syntax(when)


def test_a_run_that_fails_shows_what_there_was(tmp_path: Path) -> None:
    page, reached, logs = (tmp_path / name for name in ("page.html", "reached", "logs"))
    for arguments in (
        ["trace", INCAST, "--switch", "p0l0", "--page", page, "--first", 1000],
        ["run", INCAST, "--out", tmp_path / "a", "--coverage", reached],
        ["run", INCAST, "--out", tmp_path / "b", "--packet-logs", logs],
    ):
        result = CliRunner().invoke(weft, [*map(str, arguments), "--set", "faults.loss=0.9"])
        assert isinstance(result.exception, CheckFailedError)
        assert "retry_exceeded" in str(result.exception)
    assert "packet 1" in page.read_text(encoding="utf-8")
    (coverage,) = read_coverage(reached)
    assert coverage.states["start"] > 0
    assert (logs / "p0l0.log").read_text(encoding="utf-8").endswith("out of port 1\n")


def received(output: str) -> list[tuple[int, str]]:
    """Return time and switch of each packet shown, and its number."""
    return [(int(number), place) for place, number in re.findall(r"^(.*): packet (\d+): in by", output, re.MULTILINE)]


@pytest.mark.parametrize(
    "when", ["out_port == 1 and deq_qdepth > 200", "bth.ack_request == 1 or ipv4.ecn == 3", "ipv4.ttl == udp.length"]
)
def test_a_search_and_a_second_run_show_the_packets_of_one_traced_run(when: str) -> None:
    packets, traces = traced(when=when)
    if not packets:
        with refused(CheckFailedError, problem=f"{traces.others} packets did not"):
            weft_trace(INCAST, "--switch", "p0l0", "--when", when, "--first", 10_000)
        return
    output = weft_trace(INCAST, "--switch", "p0l0", "--when", when, "--first", 10_000)
    assert [number for number, _ in received(output)] == [each.trace.number for each in packets]
    first = weft_trace(INCAST, "--switch", "p0l0", "--when", when, "--first", 3)
    earliest = sorted(packets, key=lambda each: each.received_ps)[:3]
    assert {number for number, _ in received(first)} == {each.trace.number for each in earliest}


def test_patterns_and_all_stand_for_switches() -> None:
    one_by_one = weft_trace(INCAST, "--switch", "p0l0", "--switch", "p0l1", "--first", 9)
    assert weft_trace(INCAST, "--switch", "p0l*", "--first", 9) == one_by_one
    everywhere = weft_trace(INCAST, "--switch", "all", "--when", "bth.opcode < 64", "--first", 30)
    assert len({place.rpartition(", ")[2] for _, place in received(everywhere)}) > 1
    with refused(BadInputError, place="--switch", problem="no switch matches 'p1*'", valid="p0l0, p0l1, p0s0, p0s1"):
        weft_trace(INCAST, "--switch", "p1*")


def test_another_program_can_be_traced(tmp_path: Path) -> None:
    program = INCAST.parents[2] / "p4" / "fabric.p4"
    mine = tmp_path / "mine.p4"
    mine.write_text(program.read_text(encoding="utf-8"), encoding="utf-8")
    shutil.copytree(program.parent / "include", tmp_path / "include")
    assert "\n├── " in weft_trace(INCAST, "--switch", "p0l0", "--p4", mine)
    (tmp_path / "include" / "identity.p4").write_text("not P4\n", encoding="utf-8")
    result = CliRunner().invoke(weft, ["trace", str(INCAST), "--switch", "p0l0", "--p4", str(mine)])
    assert isinstance(result.exception, BadInputError)
    assert "identity.p4" in str(result.exception)


def test_a_run_ends_once_its_packets_are_shown() -> None:
    packets: list[TracedPacket] = []
    traces = PacketTraces(["p0l0"], packets.append, 2, ends_run=True)
    with pytest.raises(RunEndedEarlyError):
        run_scenario(run_spec(load_scenario(INCAST)), attached=[traces])
    assert len(packets) == 2


def test_a_run_that_fails_shows_packets_that_match(tmp_path: Path) -> None:
    arguments = ["trace", INCAST, "--switch", "p0l0", "--when", "bth", "--first", 10_000, "--set", "faults.loss=0.9"]
    result = CliRunner().invoke(weft, list(map(str, arguments)))
    assert isinstance(result.exception, CheckFailedError)
    assert "packet 1: in by port" in result.stdout


AGGREGATION = """
name: sums
clock: virtual
fabric: {planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 2, host_rate: 100Gb/s}
traffic: [{collective: allreduce, algorithms: [in-network], sizes: [4KiB], dtype: int32}]
"""


def test_a_contribution_that_a_switch_adds_up_is_absorbed_not_dropped(tmp_path: Path) -> None:
    scenario, page = tmp_path / "sums.yaml", tmp_path / "page.html"
    scenario.write_text(AGGREGATION)
    output = weft_trace(scenario, "--switch", "p0l0", "--when", "absorbed", "--page", page)
    assert "── absorbed: its data are in the switch's registers" in output
    assert "dropped" not in output
    (folded,) = [line for line in output.splitlines() if " times the same: lanes.lane0 " in line]
    assert re.search(r"\d+ steps, 256 times the same: lanes.lane0 … lanes.lane255 ", folded)
    (packet,) = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1])["packets"]  # type: ignore[index]
    assert packet["steps"][-1]["text"].endswith("so nothing goes out")
    (fold,) = [step["fold"] for step in packet["steps"] if "fold" in step and step["fold"]["text"] in folded]
    assert 256 * 2 < fold["steps"] < len(packet["steps"])
    with refused(CheckFailedError, problem="no packet matches --when"):
        weft_trace(scenario, "--switch", "all", "--when", "drop")


def test_the_real_clock_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Real:
        lab = object()

    with refused(EnvironmentLacksError, problem="--switch is for runs of the"):
        PacketTraces(["p0l0"], lambda _: None, 1).begin(Real())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments", [[INCAST], [INCAST, "--switch", "p0l0", "--packet", "00"], ["p0l0", "--switch", "p0l0"]]
)
def test_options_are_those_of_what_is_traced(arguments: list[object]) -> None:
    result = CliRunner().invoke(weft, ["trace", *map(str, arguments)])
    assert result.exit_code == 2
