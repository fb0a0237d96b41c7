"""Power over the time of jobs: closed forms, laws, and runs that are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft.cli import run_guarded, weft
from weft.cost import bill_of, read_prices
from weft.cost.layout import floor_of
from weft.cost.power import Busy, Power, State, busy_communicating, busy_of_operations, power_trace
from weft.cost.prices import StateWatts
from weft.cost.rack_power import network_watts
from weft.errors import BadInputError
from weft.quantities.arrays import Integers
from weft.quantities.units import PS_PER_MS, PS_PER_S
from weft.recording.tables import Names, Table
from weft.scenario import Change
from weft.topologies import FabricSpec, fat_tree, leaf_spine
from weft.topologies.kinds.optical_core import optical_core

WATTS = StateWatts(compute=700, communicate=200, idle=100, host=50)
PRICES = read_prices(changes=[Change("layout.accelerators_per_rack", 2, "--assume")])
JOB = """
name: powered
clock: virtual
fabric: {planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 2, host_rate: 100Gb/s}
traffic:
  - model: {layers: 2, hidden: 256, heads: 4, feed_forward: 512, vocabulary: 1024, sequence: 128}
    parallel: {data: 2}
    accelerator: A100
    ranks: [1, 2]
  - {collective: allreduce, algorithms: [ring], sizes: [64KiB]}
"""


def pair(hosts: int = 2) -> FabricSpec:
    return leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=hosts, host_rate_bps=100e9)


def spans(*pairs: tuple[int, int]) -> tuple[Integers, Integers]:
    return np.array([begin for begin, _ in pairs], np.int64), np.array([end for _, end in pairs], np.int64)


def test_a_steps_energy_is_the_sum_of_states_times_watts() -> None:
    # Rank 0 computes for 0 to 6 ms and communicates for 4 to 9; rank 1 computes for 0 to 2 and communicates for 4 to 9.
    # Alone, rank 0: 4 ms compute, 2 both, 3 communicate, 1 idle. Rank 1: 2 compute, 5 communicate, 3 idle.
    end_ps = 10 * PS_PER_MS
    ms = PS_PER_MS
    busy = [Busy(spans((0, 6 * ms)), spans((4 * ms, 9 * ms))), Busy(spans((0, 2 * ms)), spans((4 * ms, 9 * ms)))]
    found = power_trace(pair(), PRICES, WATTS, [0, 1], busy, end_ps)
    network = bill_of(pair(), PRICES).watts
    accelerators_mj = (4 + 2 + 2) * 700 + (3 + 5) * 200 + (1 + 3) * 100
    assert found.total.joules == pytest.approx((accelerators_mj + 10 * (network + 2 * 50)) / 1000)
    assert found.total.mean_watts == pytest.approx(found.total.joules * 100)
    constant = network + 100
    # 0 to 2: 700 + 700; to 4: 700 + 100; to 6: 700 + 200; to 9: 200 + 200; to 10: 100 + 100.
    assert found.total.since_ps.tolist() == [0, 2 * ms, 4 * ms, 6 * ms, 9 * ms]
    assert found.total.watts == pytest.approx([constant + each for each in (1400, 800, 900, 400, 200)])
    assert (found.total.peak_watts, found.total.swing_watts) == pytest.approx((constant + 1400, 1200))
    assert found.state_shares == pytest.approx(
        {State.COMPUTE: 0.3, State.BOTH: 0.1, State.COMMUNICATE: 0.4, State.IDLE: 0.2}
    )
    assert list(found.racks) == [(0, 0)]
    both = power_trace(pair(), PRICES, WATTS.model_copy(update={"both": 800.0}), [0, 1], busy, end_ps)
    assert both.total.joules - found.total.joules == pytest.approx(2 * 100 / 1000)


def test_ramps_are_between_moments_at_most_a_window_apart() -> None:
    ms = PS_PER_MS
    # 100 until 10 ms, 300 until 10.4, 600 until 20, 650 until 22, 0 until 30.
    course = Power(
        np.array([0, 10 * ms, 10 * ms + 4 * ms // 10, 20 * ms, 22 * ms]),
        np.array([100.0, 300.0, 600.0, 650.0, 0.0]),
        30 * ms,
    )
    assert course.ramp_watts() == 650  # 650 to 0 at once
    up = Power(course.since_ps[:4], course.watts[:4], 22 * ms)
    assert up.ramp_watts() == 500  # 100 to 600 within 0.4 ms
    assert up.ramp_watts(3 * ms // 10) == 300
    assert up.ramp_watts(10 * ms) == 550
    assert Power(np.array([0]), np.array([5.0]), ms).ramp_watts() == 0


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30), st.integers(0, 20))
@settings(max_examples=50, deadline=None)
def test_ramps_are_those_of_all_pairs(levels: list[int], window: int) -> None:
    course = Power(np.arange(len(levels)) * 2, np.array(levels, float), 2 * len(levels))
    # A level ends as the next begins, so levels i < j are 2 (j - i - 1) apart.
    expected = max(
        (abs(levels[j] - levels[i]) for j in range(len(levels)) for i in range(j) if 2 * (j - i - 1) <= window),
        default=0,
    )
    assert course.ramp_watts(window) == expected


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_racks_add_up_to_the_total(data: st.DataObject) -> None:
    fabric = leaf_spine(planes=1, leaves=3, spines=2, hosts_per_leaf=2, host_rate_bps=100e9)
    ends = st.lists(st.integers(0, 100), min_size=0, max_size=6, unique=True).map(sorted)

    def drawn() -> tuple[Integers, Integers]:
        bounds = data.draw(ends)
        return spans(*zip(bounds[::2], bounds[1::2], strict=False))

    busy = [Busy(drawn(), drawn()) for _ in range(4)]
    found = power_trace(fabric, PRICES, WATTS, [5, 0, 3, 2], busy, 100, per_endpoint=2)
    assert sum(each.joules for each in found.racks.values()) == pytest.approx(found.total.joules)
    assert sum(found.state_shares.values()) == pytest.approx(1)
    states = sum(WATTS.of(state) * share for state, share in found.state_shares.items()) * found.accelerators
    unused = 4 * WATTS.idle  # 12 accelerators, of which the job has 8
    constant = found.network_watts + 12 * WATTS.host
    assert found.servers_watts == 12 * WATTS.host
    assert found.total.mean_watts == pytest.approx(states + unused + constant)
    assert found.total.peak_watts <= sum(each.peak_watts for each in found.racks.values()) + 1e-6


@pytest.mark.parametrize(
    "fabric",
    [
        fat_tree(planes=2, k=4, host_rate_bps=400e9),
        leaf_spine(planes=1, leaves=4, spines=2, hosts_per_leaf=3, host_rate_bps=100e9),
        optical_core(leaves=4, matchings={"all": (0, 1), "twice": (0, 0)}, host_rate_bps=100e9),
    ],
    ids=lambda fabric: str(fabric.parameters["kind"]),
)
@pytest.mark.parametrize("optics", ["pluggable", "cpo"])
def test_the_racks_network_is_the_bills(fabric: FabricSpec, optics: str) -> None:
    changes = [Change("copper", [], "--assume"), Change("layout.accelerators_per_rack", 4, "--assume")]
    if optics == "cpo" and fabric.parameters["kind"] == "fat_tree":
        changes.append(Change("optics", optics, "--assume"))
    table = read_prices(changes=changes)
    racks = network_watts(fabric, table, floor_of(fabric, table.layout))
    assert len(racks) > 1 or len(fabric.hosts) <= 4
    assert sum(racks.values()) == pytest.approx(bill_of(fabric, table).watts)


def test_operations_that_overlap_count_once() -> None:
    kinds = ["compute", "send", "receive", "collective", "timer", "read"]
    rows = [
        (0, "compute", 0, 4), (0, "compute", 2, 5), (0, "timer", 0, 90), (0, "send", 3, 6), (0, "collective", 6, 8),
        (0, "receive", 1, 1), (1, "read", 2, 3),
    ]  # fmt: skip
    table: Table = {
        "rank": np.array([row[0] for row in rows]),
        "kind": Names(np.array([kinds.index(row[1]) for row in rows]), kinds),
        "start_ps": np.array([row[2] for row in rows]),
        "end_ps": np.array([row[3] for row in rows]),
    }
    first, second = busy_of_operations(table, 2)
    assert [each.tolist() for each in first.compute] == [[0], [5]]
    assert [each.tolist() for each in first.communicate] == [[3], [8]]
    assert [each.tolist() for each in second.compute] == [[], []]
    assert [each.tolist() for each in second.communicate] == [[2], [3]]


def test_a_collective_draws_the_same_all_the_time() -> None:
    found = power_trace(pair(), PRICES, WATTS, [0, 1], busy_communicating(2, PS_PER_S), PS_PER_S)
    assert found.total.swing_watts == found.total.ramp_watts() == 0
    assert found.total.joules == pytest.approx(bill_of(pair(), PRICES).watts + 2 * (200 + 50))


def run(*arguments: str | Path) -> tuple[int, str, str]:
    runner = CliRunner()
    found: list[int] = []
    with runner.isolation() as (out, err, _):
        found.append(run_guarded(lambda: weft.main([str(each) for each in arguments], "weft", standalone_mode=False)))
        texts = out.getvalue().decode(), err.getvalue().decode()
    return found[0], *texts


def test_a_runs_power_is_that_of_its_ranks_racks(tmp_path: Path) -> None:
    scenario, out, plot = tmp_path / "powered.yaml", tmp_path / "run", tmp_path / "power.svg"
    scenario.write_text(JOB)
    assert run("run", scenario, "--out", out)[0] == 0
    racks = "--assume", "layout.accelerators_per_rack=1"
    code, text, _ = run("power", scenario, "--run", out, "--accelerator", "A100", *racks, "--json", "--plot", plot)
    assert code == 0
    step, collective = json.loads(text)["jobs"]
    results = json.loads((out / "results.json").read_text())
    assert step["time_ps"] == results["training_jobs"][0]["step_ps"]
    assert step["tokens"] == results["training_jobs"][0]["plan"]["tokens"]
    computed = sum(results["training_jobs"][0]["ranks"]["compute"]) / 2 / step["time_ps"]
    assert step["state_shares"]["compute"] + step["state_shares"]["both"] == pytest.approx(computed)
    # Ranks 1 and 2 of the fabric compute, in the second and third rack; the others are idle.
    assert [each["swing_watts"] > 0 for each in step["racks"]] == [False, True, True, False]
    assert collective["accelerators"] == 4
    assert collective["total"]["swing_watts"] == 0
    assert plot.read_text().count("<polyline") == 5
    code, text, _ = run("power", scenario, "--run", out, "--accelerator", "A100", *racks)
    assert (code, "a training step: " in text, "J a token" in text) == (0, True, True)
    # More watts while computing, and nothing else, is more energy by so much.
    more = "--assume", "accelerators.A100.states.compute=500"
    _, text, _ = run("power", scenario, "--run", out, "--accelerator", "A100", *racks, *more, "--json")
    extra = json.loads(text)["jobs"][0]["total"]["joules"] - step["total"]["joules"]
    assert extra == pytest.approx(2 * 100 * computed * step["time_ps"] / PS_PER_S)

    (out / "training-0-operations.csv").write_text("rank,operation,kind,stream,category,name,start_ps,end_ps\n")
    code, _, text = run("power", scenario, "--run", out, "--accelerator", "A100")
    assert (code, "training-0-operations.csv: is missing, or has no rows" in text) == (3, True)
    (out / "training-0-operations.csv").write_text(
        "rank,operation,kind,stream,category,name,start_ps,end_ps\n0,0,compute,0,forward,,0,5\n"
    )
    code, _, text = run("power", scenario, "--run", out, "--accelerator", "A100")
    assert (code, "has the operations of 1 of 2 ranks" in text) == (3, True)
    code, _, text = run("power", scenario, "--run", out, "--accelerator", "A100", "--set", "fabric.spines=2")
    assert (code, "made_by.fabric.spines" in text) == (3, True)
    code, _, text = run("power", scenario, "--run", out, "--accelerator", "A100", "--plot", tmp_path / "power.pdf")
    assert (code, "unknown suffix '.pdf'" in text) == (3, True)


def test_runs_without_a_timeline_are_refused(tmp_path: Path) -> None:
    scenario = tmp_path / "incast.yaml"
    scenario.write_text(JOB.split("traffic:")[0] + "traffic: [{incast: h0, bytes_per_sender: 4KiB}]\n")
    assert run("run", scenario, "--out", tmp_path / "run")[0] == 0
    code, _, text = run("power", scenario, "--run", tmp_path / "run", "--accelerator", "H100")
    assert (code, "no job with a timeline" in text) == (3, True)
    assert run("power", scenario, "--run", tmp_path / "run")[0] == 2


def test_accelerators_without_states_are_refused() -> None:
    own = {"X": {"price": 1, "watts": 2}, "Y": {"price": 1, "watts": 2, "states": WATTS.model_dump()}}
    table = read_prices(changes=[Change("accelerators", own, "--assume")])
    assert table.states_of("Y") == WATTS
    with refused(BadInputError, place="accelerators.X.states", valid="Y"):
        table.states_of("X")
    with refused(BadInputError, problem="no accelerator 'Z'"):
        table.states_of("Z")
