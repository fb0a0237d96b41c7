"""Run the same jobs and failures on the fabrics of docs/decision.md, and record what they took, in decision.json.

    .venv/bin/python benchmarks/decision_runs.py [--runs DIR] [--workers N]

Runs that have ended in DIR are not repeated. All is in virtual time, so the machine does not matter; some ten
minutes of processor time. benchmarks/decision_page.py makes the page from the record.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

from weft.bench.link_failures import busiest_links
from weft.cost import cost_figures, read_prices
from weft.drills.latency_tolerance import tolerance_procedure
from weft.drills.part_failures import settled
from weft.engine import congestion_control_kind, path_choice_kind
from weft.errors import WeftError
from weft.goodput import MeasuredFailure, cluster_of, outcome_of
from weft.paths import ROOT
from weft.quantities.units import PS_PER_S, parse_rate_bps, parse_size_bytes
from weft.run.spec import run_spec
from weft.run.traffic_kinds.model import TrainingJobTraffic
from weft.scenario import parse_scenario
from weft.scenario.cluster import ClusterSection
from weft.scenario.fabric_presets import with_preset
from weft.scenario.model import Scenario
from weft.scenario.nic import NicSection
from weft.scenario.places import Places
from weft.scenario.presets import merged
from weft.topologies import FabricSpec
from weft.traffic.transports.registry import TRANSPORT_KINDS
from weft.trials import Procedure, Trial, TrialRun, TrialRunner

RECORD = ROOT / "benchmarks" / "decision.json"
LONGER = 0.05
HISTORIES = 20
HOST_RATE = "400Gb/s"
RANKS_PER_HOST = 4
SWITCH_SECTIONS = ("pfc", "credits", "ecn", "trimming", "routing", "switching")
"""Sections of a scenario that stand for settings of switches; `transport` stands for settings of hosts."""


@dataclass(frozen=True)
class Size:
    """How large the fabric and its jobs are; the page has the full size, its test a smaller one."""

    leaves: int
    spines: int
    data: int
    alltoall: str
    message: str
    incast: str

    @property
    def accelerators(self) -> int:
        """Endpoints of the fabric: two hosts of four accelerators on a leaf."""
        return 8 * self.leaves

    def common(self) -> dict[str, Any]:
        """Return what all fabrics share."""
        return {
            "clock": "virtual",
            "seed": 1,
            "fabric": {
                "planes": 1,
                "leaves": self.leaves,
                "spines": self.spines,
                "hosts_per_leaf": 2,
                "ranks_per_host": RANKS_PER_HOST,
                "host_rate": HOST_RATE,
                "delay": "500ns",
            },
            "control": {"latency": "2us", "detection": "10us"},
        }

    def step(self) -> dict[str, Any]:
        """Return a training step: tensor parallel inside hosts, pipeline and data parallel between them."""
        return {
            "model": {
                "layers": 4,
                "hidden": 1024,
                "heads": 16,
                "kv_heads": 8,
                "feed_forward": 2816,
                "vocabulary": 4096,
                "sequence": 512,
            },
            "parallel": {"tensor": 4, "sequence": True, "pipeline": 2, "data": self.data},
            "micro_batches": 8,
            "accelerator": "H100",
        }

    def jobs(self) -> dict[str, dict[str, Any]]:
        """Return the jobs by name, each an item of traffic."""
        return {
            "training step": self.step(),
            "MoE all-to-all": {
                "collective": "alltoall",
                "algorithms": ["direct"],
                "sizes": [self.alltoall],
                "data": "lengths",
            },
            "incast": {"incast": "h0", "bytes_per_sender": self.incast, "data": "lengths"},
            "permutation": {"permutation": self.message, "data": "lengths"},
        }


FULL = Size(leaves=4, spines=8, data=4, alltoall="8MiB", message="2MiB", incast="256KiB")
REDUCED = Size(leaves=2, spines=8, data=2, alltoall="512KiB", message="256KiB", incast="64KiB")


@dataclass(frozen=True)
class DecisionFabric:
    """A fabric of the page: a preset, and keys that go before the preset's."""

    name: str
    title: str
    preset: str
    keys: Mapping[str, Any] = field(default_factory=dict)

    def tree(self, size: Size) -> dict[str, Any]:
        """Return the scenario without traffic, with the preset's keys written out."""
        own = {"name": self.name, "preset": self.preset, **merged(size.common(), dict(self.keys))}
        tree, _ = with_preset(own, Places(""))
        return {key: value for key, value in tree.items() if key != "preset" and value is not None}


FABRICS = (
    DecisionFabric("infiniband-like", "InfiniBand-like", "infiniband-xdr"),
    DecisionFabric("roce-pfc-dcqcn", "RoCEv2, PFC and DCQCN", "roce-dcqcn"),
    DecisionFabric("roce-no-pfc", "RoCEv2 without PFC", "roce-dcqcn", {"pfc": None}),
    DecisionFabric("ultra-ethernet", "UET", "ultra-ethernet"),
    DecisionFabric("mrc", "MRC", "mrc"),
)
UNPACED = "ECMP, 1 queue pair, no congestion control"
BALANCING = {
    "ECMP, 1 queue pair": ("flow", 1),
    UNPACED: ("flow", 1),
    "ECMP, 16 queue pairs (queue-pair scaling alone)": ("flow", 16),
    "E-ECMP, 1 queue pair": ("flow_and_queue_pair", 1),
    "E-ECMP, 4 queue pairs (queue-pair scaling)": ("flow_and_queue_pair", 4),
    "E-ECMP, 16 queue pairs (queue-pair scaling)": ("flow_and_queue_pair", 16),
}
"""Ways of RoCEv2 to spread a permutation, on roce-pfc-dcqcn."""
SEEDS = 8
"""Runs of each way: hashes differ from seed to seed."""

FAILURES = ("silent", "flap", "slow", "lossy", "switch")
FAILURE_TITLES = {
    "silent": "a link loses all packets of one direction for 200 ms, and no end notices",
    "flap": "a link is down three times, for 50 µs each",
    "slow": "a link sends at a tenth of its rate",
    "lossy": "a link loses one of 10,000 packets",
    "switch": "a spine loses all its links",
}
_SILENT_PS = 200 * 10**9
"""Longer than a queue pair repeats packets before it gives up."""
# Grattafiori et al. 2024, table 5: 419 unplanned interruptions of 16,384 accelerators in 54 days, 35 by switches and
# cables. How these divide among the five kinds is not published: equally.
_CLUSTER_ACCELERATORS, _DAYS = 16_384, 54.0
_NETWORK_INTERRUPTIONS, _OTHER_INTERRUPTIONS = 35, 384
_DAY_S = 86_400.0
_REPAIR = "4h"
"""Time until somebody has found a slow part and routes avoid it."""


def failure_keys(kind: str, link: str, at_ps: int) -> dict[str, Any]:
    """Return the keys of a scenario that make a failure of a link, LEAF:PORT<->SPINE:PORT, happen from a time on."""
    leaf, spine = link.split("<->")
    at = f"{at_ps}ps"
    match kind:
        case "silent":
            one_way = f"{leaf}->{spine}"
            until = f"{at_ps + _SILENT_PS}ps"
            return {
                "events": [
                    {"link": one_way, "state": "down", "at": at},
                    {"link": one_way, "state": "up", "at": until},
                ]
            }
        case "flap":
            return {"events": [{"link": link, "state": "flapping", "at": at, "count": 3, "period": "100us"}]}
        case "slow":
            return {"events": [{"link": link, "state": "slow", "rate": "40Gb/s", "at": at}]}
        case "lossy":
            return {"faults": {"links": [{"link": link, "loss": 1e-4}]}}
        case "switch":
            return {"events": [{"link": f"{spine.split(':')[0]}<->*", "state": "down", "at": at}]}
    raise AssertionError(kind)


@dataclass(frozen=True)
class JobFigures:
    """Time of a job, and what its fabric counted meanwhile."""

    time_ps: int
    marks: int
    drops: int
    trimmed: int
    pauses: int
    retransmissions: int
    largest_queue_bytes: int


def figures_of(run: TrialRun) -> JobFigures:
    """Return the figures of a run of one job."""
    results = run.results
    return JobFigures(
        time_ps=sum(phase.end_ps - phase.start_ps for phase in results.phases),
        marks=sum(plane.ecn_marked_packets for plane in results.planes),
        drops=sum(results.drops.values()),
        trimmed=sum(each.trimmed_packets for each in results.trimming),
        pauses=sum(each.pauses_sent for each in results.memory),
        retransmissions=results.retransmissions,
        largest_queue_bytes=max(plane.largest_queue_bytes or 0 for plane in results.planes),
    )


@dataclass(frozen=True)
class FailureFigures:
    """Effect of a failure on a training step.

    Attributes:
        link: which link failed, or the link below the spine that did.
        error: why the step does not end; "" if it does.
        stall_ps: what the failure itself cost the step in the middle of which it comes.
        speed: of steps from then on, as a share of steps without it.
        recovery_ps: from when a link failed until all that was sent again had been acknowledged; None: nothing was.
        retransmissions: packets sent again.
        wrong: values that an all-reduce gets wrong with the failure in place; None if it does not end.
    """

    link: str
    error: str
    stall_ps: int
    speed: float
    recovery_ps: int | None
    retransmissions: int
    wrong: int | None


def job_procedure(tree: Mapping[str, Any], item: Mapping[str, Any]) -> Procedure[JobFigures]:
    """Run a job alone."""
    (run,) = yield [Trial("job", {**tree, "traffic": [dict(item)]})]
    return figures_of(run)


def seeds_procedure(tree: Mapping[str, Any], item: Mapping[str, Any], seeds: int) -> Procedure[list[JobFigures]]:
    """Run a job alone with several seeds."""
    runs = yield [
        Trial(f"seed {seed}", {**tree, "seed": seed, "traffic": [dict(item)]}) for seed in range(1, seeds + 1)
    ]
    return [figures_of(run) for run in runs]


def failure_procedure(tree: Mapping[str, Any], size: Size, kind: str) -> Procedure[FailureFigures]:
    """Run a step twice and a checked all-reduce, without the failure, and with it from the middle of the first step.

    What fails is the link from a leaf to a spine that carried most, or the spine above it.
    """
    checked = {"collective": "allreduce", "algorithms": ["ring"], "sizes": ["256KiB"]}
    traffic = [size.step(), size.step(), checked]
    fabric = _fabric_of(tree)
    edges = {nic.switch for host in fabric.hosts for nic in host.nics}
    upwards = [str(end) for link in fabric.links_between_switches for end in link.ends if end.node in edges]
    (steady,) = yield [Trial("without failures", {**tree, "traffic": traffic})]
    first, second = _times_ps(steady)[:2]
    at_ps = steady.results.phases[0].start_ps + first // 2
    link = busiest_links(steady, upwards)[0]
    (failed,) = yield [Trial(kind, {**tree, "traffic": traffic, **failure_keys(kind, link, at_ps)})]
    if failed.error:
        return FailureFigures(link, _why(failed.error), 0, 0.0, None, 0, None)
    disturbed, after = _times_ps(failed)[:2]
    if kind == "lossy":  # from the start
        speed, stall_ps = min(1.0, (first + second) / (disturbed + after)), 0
    else:
        speed = min(1.0, second / after)
        stall_ps = max(0, int(disturbed - first / 2 - first / 2 / speed))
    recoveries = [each.repaired_ps for each in failed.results.link_events if each.repaired_ps is not None]
    wrong = sum(each.wrong for each in failed.results_of("collectives"))
    resent = failed.results.retransmissions
    return FailureFigures(link, "", stall_ps, speed, max(recoveries, default=None), resent, wrong)


def _why(error: str) -> str:
    """Return the first clause of an error, which names neither hosts nor steps."""
    return error.splitlines()[0].split(": ")[0]


def _fabric_of(tree: Mapping[str, Any]) -> FabricSpec:
    return run_spec(parse_scenario(dict(tree), "decision", units_required=True)).fabric


def _times_ps(run: TrialRun) -> Sequence[int]:
    return [phase.end_ps - phase.start_ps for phase in run.results.phases]


def procedures_of(size: Size, fabrics: Sequence[DecisionFabric] = FABRICS) -> Iterator[tuple[str, Procedure[Any]]]:
    """Yield all procedures by name: fabric/what/which."""
    for fabric in fabrics:
        tree = fabric.tree(size)
        for name, item in size.jobs().items():
            yield f"{fabric.name}/job/{name}", job_procedure(tree, item)
        for kind in FAILURES:
            if kind != "silent":
                yield f"{fabric.name}/failure/{kind}", failure_procedure(tree, size, kind)
        step = {**tree, "traffic": [size.step()]}
        yield f"{fabric.name}/tolerance/training step", tolerance_procedure(step, NicSection(), LONGER)
    roce = next(each for each in FABRICS if each.name == "roce-pfc-dcqcn")
    for name, (balancing, queue_pairs) in BALANCING.items():
        unpaced = {"transport": {"congestion_control": "fixed-window", "preset": None}} if name == UNPACED else {}
        tree = merged(roce.tree(size), {"routing": {"load_balancing": balancing}, **unpaced})
        item = {**size.jobs()["permutation"], "queue_pairs": queue_pairs}
        yield f"{roce.name}/balancing/{name}", seeds_procedure(tree, item, SEEDS)
    # Last, for where the job does not end, its run takes as long as hosts go on trying.
    for fabric in fabrics:
        yield f"{fabric.name}/failure/silent", failure_procedure(fabric.tree(size), size, "silent")


def operator_keys(tree: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what has to be set and may be tuned, by part of the design: keys of scenarios, which stand for settings.

    Each part has its `side` (`switches` or `hosts`), the keys that the preset or the page sets, and how many there are
    to tune. A part that a design needs without setting it, such as marks that its congestion control asks for, counts.
    """
    transport = parse_scenario({**tree}, "decision", units_required=True).transport
    control = congestion_control_kind(transport.congestion_control)
    parts: list[dict[str, Any]] = []

    def add(part: str, side: str, given: Sequence[str], keys: int) -> None:
        parts.append({"part": part, "side": side, "set": list(given), "keys": keys})

    sections = Scenario.model_fields
    for name in SWITCH_SECTIONS:
        given = list(tree.get(name) or {})
        if name == "ecn" and not given and not control.needs.marks:
            continue
        if given or name == "ecn":
            add(name, "switches", given, len(_fields_of(sections[name].annotation)))
    given = list(tree.get("transport") or {})
    kind = TRANSPORT_KINDS[transport.protocol]
    add("transport", "hosts", given, len({*given, *kind.own_keys}))
    add(transport.congestion_control, "hosts", [], len(control.parameters))
    if transport.path != "flow" and not kind.sprays:
        add(transport.path, "hosts", [], len(path_choice_kind(transport.path).parameters))
    return parts


def _fields_of(annotation: Any) -> Mapping[str, Any]:
    """Return the keys of a section, given the annotation of the scenario's key."""
    section = next((each for each in [annotation, *get_args(annotation)] if hasattr(each, "model_fields")), None)
    assert section is not None, annotation
    fields: Mapping[str, Any] = section.model_fields
    return fields


def ideal_ps(name: str, size: Size) -> int:
    """Return what a job takes at least: the step computing alone, others their payload at the rate of a host's link."""
    rate_bps = parse_rate_bps(HOST_RATE)
    endpoints = size.accelerators
    if name == "training step":
        plan = TrainingJobTraffic.model_validate(size.step())
        return plan.job(_fabric_of(FABRICS[0].tree(size)), 1)[1].ideal_ps
    payload = {
        "MoE all-to-all": parse_size_bytes(size.alltoall) * (endpoints - RANKS_PER_HOST) // endpoints,
        "incast": parse_size_bytes(size.incast) * (endpoints - 1),
        "permutation": parse_size_bytes(size.message),
    }[name]
    return round(payload * 8 * PS_PER_S / rate_bps)


def goodput_of(failures: Mapping[str, FailureFigures]) -> float:
    """Return the share of 54 days that 16,384 accelerators keep with these effects of failures."""
    mtbf_s = _DAYS * _DAY_S * len(failures) / _NETWORK_INTERRUPTIONS
    network = [
        {"name": kind, "part": "link", "mtbf": f"{mtbf_s:.0f}s", "effect": "measured", "repair": _REPAIR}
        for kind in failures
    ]
    others = {
        "name": "others",
        "part": "cluster",
        "mtbf": f"{_DAYS * _DAY_S / _OTHER_INTERRUPTIONS:.0f}s",
        "repair": "1d",
    }
    cluster = ClusterSection.model_validate(
        {
            "accelerators": _CLUSTER_ACCELERATORS,
            "accelerators_per_host": RANKS_PER_HOST,
            "spares": 32,
            "duration": f"{_DAYS}d",
            "failures": [others, *network],
            "checkpoint": {"cost": "10s"},
            "restart": {"detection": "2min", "start": "8min"},
        }
    )
    effects = [
        MeasuredFailure(kind, found.link, found.speed, found.stall_ps / PS_PER_S, found.error)
        for kind, found in failures.items()
    ]
    measured = [settled(each, effect, 1) for each, effect in zip(cluster.failures[1:], effects, strict=True)]
    cluster = cluster.model_copy(update={"failures": [cluster.failures[0], *measured]})
    return outcome_of(cluster_of(cluster, _fabric_of(FABRICS[0].tree(FULL))), 1, HISTORIES).goodput.mean


def record_of(size: Size, directory: Path, workers: int | None = None) -> dict[str, Any]:
    """Run everything, and return the record. Raises WeftError if a run could not be made."""
    found: Mapping[str, Any] = TrialRunner(directory, workers).run(dict(procedures_of(size)))
    for name, each in found.items():
        if isinstance(each, WeftError):
            raise WeftError(f"{name}: {each}")
    jobs = list(size.jobs())
    record: dict[str, Any] = {
        "accelerators": size.accelerators,
        "longer": LONGER,
        "size": asdict(size),
        "ideal_ps": {name: ideal_ps(name, size) for name in jobs},
        "failures": {kind: FAILURE_TITLES[kind] for kind in FAILURES},
        "fabrics": {},
    }
    table = read_prices()
    for fabric in FABRICS:
        tree = fabric.tree(size)
        failures = {kind: found[f"{fabric.name}/failure/{kind}"] for kind in FAILURES}
        tolerance = found[f"{fabric.name}/tolerance/training step"]
        kept = goodput_of(failures)
        cost = cost_figures(fabric.name, _fabric_of(tree), table, "H100", 1, kept)
        record["fabrics"][fabric.name] = {
            "title": fabric.title,
            "preset": fabric.preset,
            "keys": dict(fabric.keys),
            "jobs": {name: asdict(found[f"{fabric.name}/job/{name}"]) for name in jobs},
            "failures": {kind: asdict(each) for kind, each in failures.items()},
            "tolerance": {**asdict(tolerance), "formula_ps": tolerance.formula_ps},
            "operators": operator_keys(tree),
            "cost": {
                "network": cost.bill.price,
                "watts": cost.bill.watts,
                "accelerator_hour": cost.whole_per_accelerator_hour,
                "network_hour": cost.per_accelerator_hour,
                "kept_share": kept,
                "kept_hour": cost.per_kept_hour,
            },
        }
    record["balancing"] = balancing_record(found)
    return record


def balancing_record(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the runs of each way to spread a permutation."""
    return {
        name: {
            "load_balancing": way,
            "queue_pairs": queue_pairs,
            "runs": [asdict(each) for each in found[f"roce-pfc-dcqcn/balancing/{name}"]],
        }
        for name, (way, queue_pairs) in BALANCING.items()
    }


def main() -> None:
    """Run and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("build/decision"), metavar="DIR")
    parser.add_argument("--workers", type=int)
    options = parser.parse_args()
    record = record_of(FULL, options.runs, options.workers)
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
