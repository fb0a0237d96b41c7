"""Noisy parts are found, named and taken out of use; healthy fabrics are left alone."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import bench_noisy_parts as bench
import pytest
from rich.console import Console

from weft.controller.noise.evidence import FAULTS, NoisyPart
from weft.errors import BadInputError
from weft.results.printing import print_run
from weft.results.results_file import read_results
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.scenario import fabric_options, parse_scenario
from weft.scenario.health import HealthSection


def run(**keys: Any) -> RunResult:
    scenario = {
        "clock": "virtual",
        "fabric": {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 3, "host_rate": "100Gb/s"},
        "transport": {"congestion_control": "dcqcn", "retransmission": "selective-repeat", "path": "spray"},
        "traffic": [{"permutation": "4MiB", "data": "lengths"}],
        "health": {},
    }
    return run_scenario(parse_scenario(scenario | keys))


def lossy(*links: str) -> dict[str, Any]:
    return {"links": [{"link": link, "loss": 0.01} for link in links]}


def done(part: NoisyPart) -> tuple[str, str, str]:
    return part.fault, part.part, part.element


@pytest.mark.parametrize("what", sorted(bench.FAULTS))
def test_a_mild_fault_is_found_and_named_and_no_other(what: str) -> None:
    found = bench.planted_run(what, seed=31)
    assert found.found_us is not None
    assert found.others == ()
    assert found.done.endswith("out of use")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_twenty_mild_faults_are_found_and_named(number: int) -> None:
    what = list(bench.FAULTS)[number % len(bench.FAULTS)]
    found = bench.planted_run(what, seed=1 + number)
    assert found.found_us is not None
    assert found.others == ()
    assert found.done.endswith("out of use")


def test_healthy_fabrics_are_left_alone() -> None:
    outcome = bench.healthy_runs(8, seed=3)
    assert outcome.runs == outcome.of_traffic.total() == 8
    assert outcome.packets > 0
    assert outcome.found == []


@pytest.mark.slow
@pytest.mark.parametrize(("example", "seed"), [("example tcp", 484972553), ("example collective", 108854731)])
def test_large_frames_and_short_requests_are_no_slow_ports(example: str, seed: int) -> None:
    """TCP fills link_mtu; rings of many ranks post a short request as another completes."""
    keys = {"clock": "virtual", "seed": seed, "health": bench.HEALTH}
    result = run_scenario(parse_scenario(bench.examples()[example] | bench.SETTINGS["IPv6, small packets"] | keys))
    assert result.ok
    assert result.noisy_parts == []


@pytest.mark.slow
def test_more_healthy_fabrics_are_left_alone() -> None:
    assert bench.healthy_runs(40, seed=4).found == []


def test_all_faults_are_planted() -> None:
    planted = {each(random.Random(1))[1] for each in bench.FAULTS.values()}
    assert planted == set(FAULTS)


def test_links_are_kept_that_paths_need() -> None:
    # Both uplinks of p0l0 are lossy: one goes.
    result = run(faults=lossy("p0l0->p0s0", "p0l0->p0s1"), traffic=[{"permutation": "8MiB", "data": "lengths"}])
    first, second = result.noisy_parts
    assert {first.part, second.part} == {"p0l0<->p0s0", "p0l0<->p0s1"}
    assert (first.action, second.action) == ("cordoned", "reported")
    assert first.element == first.part
    assert second.reason == "without it, 0 of 2 links of p0l0 to other switches would be left"


def test_a_host_without_a_spare_is_reported() -> None:
    (part,) = run(faults=lossy("h1->p0l0")).noisy_parts
    assert done(part) == ("lossy", "h1<->p0l0", "")
    assert part.kind == "host link"
    assert "no spare hosts" in part.reason
    assert "0 of 1 planes" in part.reason


def test_a_plane_is_left_for_the_sake_of_a_host_if_enough_others_stay() -> None:
    fabric = {"planes": 4, "leaves": 2, "spines": 1, "hosts_per_leaf": 2, "host_rate": "100Gb/s"}
    (part,) = run(fabric=fabric, faults=lossy("p2l0->h1")).noisy_parts
    assert done(part) == ("lossy", "h1<->p2l0", "plane 2")


def test_health_may_report_alone() -> None:
    result = run(faults=lossy("p0l0->p0s1"), health={"act": False})
    (part,) = result.noisy_parts
    assert (done(part), part.reason) == (("lossy", "p0l0<->p0s1", ""), "health.act is false")
    assert [event.kind for event in result.controller_events] == ["lossy", "kept in use"]


def test_a_link_is_kept_without_which_routes_lose_destinations() -> None:
    """Dimension order needs every link of a row of two."""
    result = run(
        fabric={"shape": [2, 3], "planes": 1, "hosts_per_leaf": 1, "host_rate": "100Gb/s"},
        routing={"kind": "dimension_order"},
        transport={"retransmission": "selective-repeat"},
        faults=lossy("p0n0->p0n3"),
    )
    assert all(part.action == "reported" for part in result.noisy_parts)


def test_links_that_are_all_as_bad_are_not_noisy() -> None:
    assert run(faults={"loss": 0.005}).noisy_parts == []


def test_equal_bursts_in_each_interval_are_no_slow_link() -> None:
    """Workers push to a server once in 340 µs: the port marks in each interval, and sends as much in each."""
    scenario = {
        "clock": "virtual",
        "fabric": {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 4, "host_rate": "10Gb/s"},
        "controller": {"link_watch": {"slow": 0.8}, "interval": "8ms"},
        "traffic": [{"parameter_server": 1, "workers": 7, "parameters": "32KiB", "steps": 220, "compute": "150us"}],
    }
    assert run_scenario(parse_scenario(scenario)).controller_events == []


def test_what_is_found_is_printed_written_and_read(tmp_path: Path) -> None:
    result = run(faults=lossy("p0l0->p0s1"))
    console = Console(width=200, record=True, file=io.StringIO())
    print_run(console, result)
    text = console.export_text()
    assert "noisy parts" in text
    assert "p0l0<->p0s1 is out of use" in text
    result.save(tmp_path)
    (written,) = json.loads((tmp_path / "results.json").read_text())["noisy_parts"]
    assert written["evidence"] in text
    assert read_results(tmp_path / "results.json").noisy_parts == result.noisy_parts


def test_without_the_section_nothing_is_looked_for_and_results_do_not_name_it() -> None:
    result = run(health=None, traffic=[{"permutation": "16KiB", "data": "lengths"}])
    data = result.as_dict()
    assert "noisy_parts" not in data
    assert "health" not in data["made_by"]


def test_files_do_not_depend_on_the_workers(tmp_path: Path) -> None:
    written = []
    for workers in (1, 2):
        run(workers=workers, faults=lossy("p0l0->p0s1")).save(tmp_path / str(workers))
        written.append((tmp_path / str(workers) / "results.json").read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ({"clock": "real", "health": {}}, "health"),
        ({"health": {"slow": 0.95}}, "health.slow"),
        ({"health": {"straggler": 0.5}}, "health.straggler"),
        ({"health": {"nothing": 1}}, "health.nothing"),
        ({"health": 3}, "health"),
        ({"faults": {"hosts": [{"host": "h99", "compute": 2}]}}, "faults.hosts[0].host"),
    ],
)
def test_what_cannot_be_is_refused(keys: dict[str, Any], place: str) -> None:
    with pytest.raises(BadInputError) as caught:
        run(**keys)
    assert place in str(caught.value)


def test_python_takes_the_section() -> None:
    assert fabric_options(health=HealthSection(act=False)).health == HealthSection(act=False)
