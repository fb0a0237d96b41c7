"""results.json, read back into what wrote it: every key and value checked, errors with their place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from weft.errors import BadInputError
from weft.recording.reading import quoted
from weft.recording.schema import LARGEST
from weft.results.arrays import CounterCell, RegisterCell
from weft.results.credits import CreditResult
from weft.results.flows import FlowsResult
from weft.results.json_files import read_object, validated
from weft.results.link_events import LinkEventResult
from weft.results.link_faults import LinkFaultsResult
from weft.results.run_result import CollectiveResult, IntPath, Lateness, Phase, PlaneResult
from weft.results.switch_memory import MemoryResult
from weft.results.training_steps import TrainingStepResult
from weft.results.workloads import PERCENTILES, WorkloadResult
from weft.scenario.observe import ObserveSection

RESULTS_FILE = "results.json"
_COUNT = Annotated[int, Field(ge=0)]
_UNBOUNDED = ("made_by", "counters", "registers")
"""Keys of results.json whose numbers have ranges of their own: those of the scenario, and of the P4 program."""
ONLY_WHERE_THERE_ARE_SOME = ("counters", "registers", "incomplete_captures")
"""Lists that are not written when they are empty."""
_MAY_BE_NEGATIVE = ("ledger",)


@dataclass(frozen=True)
class MadeBy:
    """What a report needs to know of what made a run; `all` is everything, as it was written."""

    clock: Literal["real", "virtual"]
    seed: int
    fabric: dict[str, Any]
    scenario: str = "run"
    observe: ObserveSection = field(default_factory=ObserveSection)
    all: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Count:
    """Packets and their bytes on the wire; of what is missing they may be negative."""

    packets: int
    bytes: int


@dataclass(frozen=True)
class SavedLedger:
    """What became of every packet (docs/results.md)."""

    entered: dict[str, Count]
    left: dict[str, Count]
    dropped: dict[str, Count]
    resized_bytes: int
    queued: Count
    in_flight: Count
    in_switches: Count
    missing: Count


@dataclass(frozen=True)
class SavedResults:
    """`weft.results.run_result.RunResult` as its file has it.

    `absent`: keys that the file lacks, left at their defaults.
    """

    made_by: MadeBy
    collectives: list[CollectiveResult] = field(default_factory=list)
    flows: list[FlowsResult] = field(default_factory=list)
    workloads: list[WorkloadResult] = field(default_factory=list)
    training_steps: list[TrainingStepResult] = field(default_factory=list)
    planes: list[PlaneResult] = field(default_factory=list)
    int_paths: list[IntPath] = field(default_factory=list)
    memory: list[MemoryResult] = field(default_factory=list)
    credits: list[CreditResult] = field(default_factory=list)
    link_faults: list[LinkFaultsResult] = field(default_factory=list)
    drops: dict[str, _COUNT] = field(default_factory=dict)
    absorbed: dict[str, _COUNT] = field(default_factory=dict)
    ledger: SavedLedger | None = None
    link_events: list[LinkEventResult] = field(default_factory=list)
    retransmissions: int = 0
    cnps: int = 0
    lateness: Lateness | None = None
    phases: list[Phase] = field(default_factory=list)
    counters: list[CounterCell] = field(default_factory=list)
    registers: list[RegisterCell] = field(default_factory=list)
    incomplete_captures: list[str] = field(default_factory=list)
    rows_lost: int = 0
    ok: bool | None = None
    absent: tuple[str, ...] = ()

    __pydantic_config__ = ConfigDict(arbitrary_types_allowed=True)


_ADAPTER = TypeAdapter(SavedResults)


def read_results(path: Path) -> SavedResults:
    """Read a results.json.

    Raises:
        BadInputError: it cannot be read, is no JSON, or a key's value is not what `weft run` writes; says which.
    """
    tree = read_object(path)
    _check_numbers(path, tree)
    made_by = tree.get("made_by")
    if isinstance(made_by, dict):
        made_by["all"] = dict(made_by)
    for key in ONLY_WHERE_THERE_ARE_SOME:
        tree.setdefault(key, [])
    tree["absent"] = [
        key.name for key in fields(SavedResults) if key.name not in tree and key.name != "absent"
    ]
    _restore_infinite_errors(tree)
    results = validated(_ADAPTER, path, tree)
    _check_figures(path, results)
    return results


def _restore_infinite_errors(tree: dict[str, Any]) -> None:
    """JSON knows no infinity and no NaN: `RunResult.as_dict` writes null for an error that is not finite."""
    collectives = tree.get("collectives")
    for each in collectives if isinstance(collectives, list) else ():
        if isinstance(each, dict) and each.get("largest_error", 0.0) is None:
            each["largest_error"] = math.nan


def _check_numbers(path: Path, tree: Mapping[str, Any]) -> None:
    for key, value in _numbers({key: each for key, each in tree.items() if key not in _UNBOUNDED}):
        smallest = -LARGEST if key.startswith(_MAY_BE_NEGATIVE) else 0
        if not smallest <= value <= LARGEST and (isinstance(value, int) or math.isinf(value)):
            raise BadInputError(
                f"{path}: {key}: {quoted(value)} is out of range (valid: {smallest} to {LARGEST})"
            )


def _numbers(value: Any, place: str = "") -> Iterator[tuple[str, int | float]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _numbers(each, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _numbers(each, f"{place}[{index}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place, value


def _check_figures(path: Path, results: SavedResults) -> None:
    """Check what a figure's type alone does not say, and a page divides by or puts side by side."""

    def require(right: bool, place: str, what: str) -> None:
        if not right:
            raise BadInputError(f"{path}: {place}: {what}")

    interval_ps = results.made_by.observe.interval
    require(
        interval_ps <= LARGEST,
        "made_by.observe.interval",
        f"{interval_ps} is out of range (valid: 1 to {LARGEST})",
    )
    for index, phase in enumerate(results.phases):
        wrong = f"{phase.end_ps} lies before start_ps, {phase.start_ps}"
        require(phase.end_ps >= phase.start_ps, f"phases[{index}].end_ps", wrong)
    for index, each in enumerate(results.collectives):
        require(
            each.ranks > 0, f"collectives[{index}].ranks", f"{each.ranks} is out of range (valid: 1 or more)"
        )
    for index, workload in enumerate(results.workloads):
        of_all = [(f"workloads[{index}].slowdown", workload.slowdown)]
        of_bins = [
            (f"workloads[{index}].bins[{number}].{name}", values)
            for number, each in enumerate(workload.bins)
            for name, values in (("completion_ps", each.completion_ps), ("slowdown", each.slowdown))
        ]
        for place, values in [*of_all, *of_bins]:
            wrong = f"has {len(values)} values; there are {len(PERCENTILES)} percentiles"
            require(len(values) == len(PERCENTILES), place, wrong)
