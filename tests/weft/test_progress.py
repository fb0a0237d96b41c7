"""What long runs show while they last, and that it changes nothing."""

from __future__ import annotations

import io
import json
import threading
from typing import Any

from rich.console import Console

from weft import topologies
from weft.clocks.watching import Sample, watched
from weft.commands.progress import BarProgress, JsonProgress, LineProgress, progress_text
from weft.run.fabric import Fabric
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.traffic.patterns import Flow

SCENARIO: dict[str, Any] = {
    "clock": "virtual",
    "fabric": {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": "100Gb/s"},
    "observe": {"flows": True},
    "traffic": [
        {"collective": "allreduce", "algorithms": ["ring", "in-network"], "sizes": ["256KiB"]},
        {"permutation": "1MiB"},
        {"workload": {"flow_sizes": "websearch", "load": 0.3, "duration": "100us"}},
    ],
}


class Recorder:
    """Keeps every sample; asks for samples without a pause."""

    interval_s = 0.0

    def __init__(self) -> None:
        self.runs: list[list[Sample]] = [[]]

    def see(self, sample: Sample) -> None:
        self.runs[-1].append(sample)

    def ended(self) -> None:
        self.runs.append([])


def test_watching_changes_no_result() -> None:
    recorder = Recorder()
    watched_result = run_scenario(parse_scenario(SCENARIO), watcher=recorder).as_dict()
    assert len(recorder.runs) == 4 + 1
    assert watched_result == run_scenario(parse_scenario(SCENARIO)).as_dict()


def test_a_watcher_is_asked_in_a_thread_that_ends_with_the_run() -> None:
    seen = threading.Event()
    shown: list[tuple[Sample, str]] = []

    class Watcher(Recorder):
        def see(self, sample: Sample) -> None:
            shown.append((sample, threading.current_thread().name))
            seen.set()

    watcher = Watcher()
    with watched(watcher, lambda: Sample(1, 2, 3, 4)):
        assert seen.wait(60)
    assert shown[0] == (Sample(1, 2, 3, 4), "weft-watch")
    assert len(watcher.runs) == 2, "it gets the end"
    assert not any(thread.name == "weft-watch" for thread in threading.enumerate())


def test_a_sample_has_steps_and_packets() -> None:
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)
    with Fabric(topology, clock="virtual") as fabric:
        run = fabric.hosts.prepare_traffic([Flow(0, 1, 10_240)])
        fabric.hosts.start(run)
        before = fabric.lab.run_sample(fabric.hosts, [run])
        outcome = fabric.hosts.wait(run)
        after = fabric.lab.run_sample(fabric.hosts, [run])
        assert before.steps_done == 0
        assert after.steps_done == after.step_count > 0
        assert after.packets is not None
        assert before.packets is not None
        assert after.packets - before.packets >= 10
        assert 10_240 < after.delivered_bytes - before.delivered_bytes < 13_000
        assert after.emulated_ps >= max(outcome.finished_ps)
        fabric.hosts.release(run)
        assert fabric.lab.run_sample(fabric.hosts, [run]).share is None


def test_progress_shows_what_is_known_and_no_more() -> None:
    sample = Sample(emulated_ps=1_234_567_890, steps_done=45, step_count=100, packets=22_000_000)
    assert progress_text(sample, 20.0) == "45 %, 1.235 ms emulated, 1.10 million packets/s, about 24 s left"
    assert progress_text(Sample(10**6, 0, 0, None), 20.0) == "1 µs emulated"
    assert progress_text(Sample(10**6, 0, 8, 12), 0.5) == "0 %, 1 µs emulated, 24 packets/s"
    assert progress_text(Sample(10**6, 1, 100, None), 36.0).endswith("about 59 min left")
    assert progress_text(Sample(10**6, 1, 100, None), 364.0).endswith("about 10 h 1 min left")


def test_flows_are_as_far_as_their_bytes() -> None:
    half = Sample(0, 0, 8, None, delivered_bytes=500, expected_bytes=1000)
    assert half.share == 0.5
    assert Sample(0, 0, 8, None, delivered_bytes=3000, expected_bytes=1000).share == 0.99
    assert Sample(0, 8, 8, None, delivered_bytes=3000, expected_bytes=1000).share == 1.0


def test_lines_come_at_intervals() -> None:
    now_s, printed = 0.0, []
    progress = LineProgress(printed.append, lambda: now_s)
    progress("permutation")
    for now_s in range(80):
        progress.see(Sample(now_s * 10**6, now_s, 80, now_s * 1000))
    assert [line.partition(",")[0] for line in printed] == [
        "· permutation",
        "·   12 %",
        "·   50 %",
        "·   88 %",
    ]
    progress.ended()
    progress.see(Sample(0, 0, 80, 0))
    assert len(printed) == 4, "the next run begins anew"


def test_a_bar_comes_and_goes_on_a_terminal() -> None:
    screen = io.StringIO()
    progress = BarProgress(Console(file=screen, force_terminal=True, width=120))
    progress("permutation")
    progress.see(Sample(10**6, 40, 80, 1000))
    progress.ended()
    progress.ended()
    shown = screen.getvalue()
    assert "· permutation" in shown
    assert "50 %, 1 µs emulated" in shown


def test_programs_get_an_object_a_line() -> None:
    lines: list[str] = []
    progress = JsonProgress(lines.append, now=lambda: 0.0)
    progress("building")
    progress.see(Sample(10**6, 1, 4, 500))
    progress.see(Sample(10**6, 0, 0, None))
    progress.ended()
    assert [json.loads(line) for line in lines] == [
        {"progress": {"stage": "building"}},
        {"progress": {"share": 0.25, "text": "25 %, 1 µs emulated, about 0 s left"}},
        {"progress": {"share": None, "text": "1 µs emulated"}},
    ]
