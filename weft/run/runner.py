"""Run a scenario: build its fabric, drive its traffic, collect what was found."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.clocks.lab import Progress
from weft.clocks.watching import Watcher
from weft.errors import BadInputError, EnvironmentLacksError, did_you_mean
from weft.results.model import LENGTHS
from weft.results.run_result import RunResult
from weft.run.collectives import suitable
from weft.run.data_memory import require_memory
from weft.run.extensions import make_pattern
from weft.run.fabric import Fabric
from weft.run.gradients import mlp_gradients
from weft.run.spec import RunSpec, run_spec
from weft.scenario import (
    CollectiveTraffic,
    IncastTraffic,
    KeyProblem,
    PatternTraffic,
    Scenario,
    TrainingStepTraffic,
    WorkloadTraffic,
)
from weft.topologies import FabricSpec
from weft.traffic.collectives import collective_named, collectives
from weft.traffic.schedule_nodes import ELEMENT_BYTES
from weft.traffic.training import GRADIENT_COLLECTIVE, Layer, TrainingStep

DEFAULT_SIZE_BYTES = 65536
ALL_SWITCHES = "all"


@dataclass(frozen=True)
class Captures:
    """What a run captures into `directory`: every NIC of the hosts, HOST-planeN.pcap, and every port of `switches`.

    These are called as their interfaces, SWITCH-ethN.pcap; `switches` may be just "all".
    """

    directory: Path
    switches: tuple[str, ...] = ()

    def checked(self, topology: FabricSpec, target: str) -> Captures:
        """With "all" spelt out. BadInputError for unknown switches, EnvironmentLacksError if they cannot capture."""
        if not self.switches:
            return self
        if target != "embedded":
            raise EnvironmentLacksError(
                f"{target} does not capture the ports of switches: sniff their interfaces"
            )
        names = [switch.name for switch in topology.switches]
        for name in self.switches:
            if name not in (*names, ALL_SWITCHES):
                raise BadInputError(f"--pcap-switch: unknown switch '{name}'; {did_you_mean(name, names)}")
        return replace(self, switches=tuple(names if ALL_SWITCHES in self.switches else self.switches))


def run_scenario(
    scenario: Scenario | RunSpec,
    progress: Progress = lambda _: None,
    captures: Captures | None = None,
    directory: Path | None = None,
    watcher: Watcher | None = None,
) -> RunResult:
    """Run everything in a scenario and return what was found.

    Args:
        scenario: what to run; without its description it is checked first.
        progress: called with what is being done, in words.
        captures: what is captured, and where.
        directory: where captures go that the scenario asks for; it exists.
        watcher: shown how far runs are, from a thread of its own.

    Raises:
        BadInputError, EnvironmentLacksError: nothing was run. CheckFailedError: a run did not end.
    """
    began = time.monotonic()
    spec = scenario if isinstance(scenario, RunSpec) else run_spec(scenario)
    with spec.places.locating():
        return _run(spec, began, progress, captures, directory, watcher)


def _run(
    spec: RunSpec,
    began: float,
    progress: Progress,
    captures: Captures | None,
    directory: Path | None,
    watcher: Watcher | None,
) -> RunResult:
    observe, seed = spec.options.observe, spec.options.seed
    if observe.captures and directory is None:
        raise KeyProblem("observe.captures", "the run was given no directory for captures")
    if captures is not None:
        captures = captures.checked(spec.fabric, spec.options.target)
    require_memory(spec)
    # Before the fabric is up, so that the data's making does not disturb its clock.
    prepared = [
        _inputs(traffic, len(spec.fabric.hosts), seed) if isinstance(traffic, CollectiveTraffic) else []
        for traffic in spec.traffic
    ]
    fabric = Fabric(spec, progress=progress, watcher=watcher)
    building = time.monotonic()
    with fabric:
        up = time.monotonic()
        if captures is not None:
            _capture(fabric, captures)
        for port in observe.captures:
            assert directory is not None
            fabric.capture_link(port, directory.resolve() / f"{port.replace(':', '-')}.pcapng")
        first_done = None
        for traffic, inputs in zip(spec.traffic, prepared, strict=True):
            if isinstance(traffic, CollectiveTraffic):
                for _ in _collectives(fabric, traffic, inputs, progress):
                    first_done = first_done or time.monotonic()
            elif isinstance(traffic, IncastTraffic):
                progress(f"incast on {traffic.incast}")
                fabric.incast(traffic.incast, traffic.bytes_per_sender, traffic.plane, data=traffic.data)
            elif isinstance(traffic, TrainingStepTraffic):
                _training_steps(fabric, traffic, progress)
            elif isinstance(traffic, WorkloadTraffic):
                load = traffic.workload
                progress(f"{load.flow_sizes} at a load of {load.load:g}")
                fabric.workload(load.flow_sizes, load.load, load.duration)
            elif isinstance(traffic, PatternTraffic):
                pattern = make_pattern(traffic)
                progress(type(pattern).__name__)
                fabric.pattern(pattern)
            else:
                progress("permutation")
                fabric.permutation(traffic.permutation, data=traffic.data)
        result = replace(fabric.summary(), incomplete_captures=fabric.end_captures())
        done = time.monotonic()
    wall_times_s = {
        "prepare": building - began,
        "fabric_up": up - building,
        **({"first_collective_done": first_done - building} if first_done is not None else {}),
        "traffic": done - up,
        "tear_down": time.monotonic() - done,
        "all": time.monotonic() - began,
    }
    return replace(result, wall_times_s=wall_times_s)


def _collectives(
    fabric: Fabric, traffic: CollectiveTraffic, inputs: list[list[NDArray[Any]]], progress: Progress
) -> Iterator[None]:
    """Run a collective of every size by every algorithm; yields after each of them."""
    name = traffic.collective
    collective = collective_named(name)
    title = collective.title or collective.name
    algorithms: Sequence[str] = traffic.algorithms or suitable(fabric.topology, collective)
    sizes: Sequence[int | list[NDArray[Any]]] = inputs
    if traffic.data == LENGTHS:
        sizes = traffic.sizes or [DEFAULT_SIZE_BYTES]
    for size in sizes:
        for algorithm in algorithms:
            options: dict[str, Any] = {
                "operation": traffic.operation,
                "root": traffic.root,
                "repetitions": traffic.repetitions,
                "warmup": traffic.warmup,
            }
            if isinstance(size, int):
                progress(f"{title} of {size} B, {algorithm}, lengths only")
                fabric.collective_of_lengths(name, size, algorithm, dtype=traffic.dtype, **options)
            else:
                progress(f"{title} of {size[0].nbytes} B a host, {algorithm}")
                fabric.collective(name, size, algorithm, data=traffic.data, **options)
            yield


def _training_steps(fabric: Fabric, traffic: TrainingStepTraffic, progress: Progress) -> None:
    """Run a training step by every algorithm."""
    step = TrainingStep(
        layers=tuple(
            Layer(layer.gradients // ELEMENT_BYTES, layer.forward, layer.backward)
            for layer in traffic.layers
            for _ in range(layer.count)
        ),
        bucket_bytes=traffic.bucket,
        optimizer_ps=traffic.optimizer,
    )
    gradients = None
    if traffic.data != LENGTHS:
        generator = np.random.default_rng(fabric.options.seed)
        gradients = [_random(generator, traffic.dtype, step.gradient_count) for _ in fabric.topology.hosts]
    for algorithm in traffic.algorithms or suitable(fabric.topology, collectives()[GRADIENT_COLLECTIVE]):
        progress(f"training step of {step.gradient_count * ELEMENT_BYTES} B of gradients, {algorithm}")
        fabric.training_step(step, algorithm, gradients, dtype=traffic.dtype)


def _capture(fabric: Fabric, captures: Captures) -> None:
    directory = captures.directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    for host in fabric.topology.hosts:
        for nic in host.nics:
            fabric.capture(host.name, nic.plane, directory / f"{host.name}-plane{nic.plane}.pcap")
    for name in captures.switches:
        for port in fabric.topology.switch(name).ports:
            fabric.capture_port(name, port.number, directory / f"{port.interface}.pcap")


def result_directory(spec: RunSpec, out: Path | None) -> Path:
    """Return where a run's results go: `out`, or runs/NAME-TIME below the working directory."""
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    return out or Path("runs") / f"{spec.name or 'fabric'}-{stamp}"


def _inputs(traffic: CollectiveTraffic, ranks: int, seed: int) -> list[list[NDArray[Any]]]:
    """Return, for each size, one buffer per rank."""
    if traffic.data == LENGTHS:
        return []
    if traffic.data == "mlp-gradients":
        gradients = mlp_gradients(ranks, seed)
        if traffic.dtype == "int32":
            # Fixed point with 16 fractional bits, as integer reductions of gradients use.
            return [[np.rint(each * 65536).astype(np.int32) for each in gradients]]
        return [list(gradients)]
    generator = np.random.default_rng(seed)
    collective = collective_named(traffic.collective)
    return [
        [_random(generator, traffic.dtype, collective.input_elements(size, ranks)) for _ in range(ranks)]
        for size in traffic.sizes or [DEFAULT_SIZE_BYTES]
    ]


def _random(generator: np.random.Generator, dtype: str, count: int) -> NDArray[Any]:
    if dtype == "int32":
        return generator.integers(-(2**31), 2**31, count, dtype=np.int64).astype(np.int32)
    return generator.standard_normal(count).astype(np.float32)
