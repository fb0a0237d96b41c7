"""Traces of switches in a run of virtual time: which packets they show, and that the run is the same without."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.refusals import refused
from weft.cli import weft
from weft.errors import BadInputError, CheckFailedError, EnvironmentLacksError
from weft.report.coverage import read_coverage
from weft.run.packet_traces import PacketTraces, TracedPacket
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import Change, load_scenario
from weft.switch.trace import Sent, Step

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
    assert "the switch to show packets of (valid: p0l0, p0l1, p0s0, p0s1)" in " ".join(result.output.split())
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


def test_a_run_that_fails_shows_what_there_was(tmp_path: Path) -> None:
    page, reached, logs = (tmp_path / name for name in ("page.html", "reached", "logs"))
    for arguments in (
        ["trace", INCAST, "--switch", "p0l0", "--page", page],
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
