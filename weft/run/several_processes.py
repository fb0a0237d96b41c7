"""Checks that several processes can run a scenario together: same Weft and scenario, and only supported features."""

from __future__ import annotations

import hashlib
import platform
import sys

from weft.cache import version_of
from weft.clocks.virtual.processes import Processes, of_all
from weft.errors import BadInputError, EnvironmentLacksError
from weft.paths import P4_DIRECTORY, PACKAGE
from weft.run.spec import RunSpec
from weft.scenario import KeyProblem


def require_served_by(processes: Processes, spec: RunSpec, has_captures: bool) -> None:
    """Check that processes can serve a run together; a single process can serve any run.

    Raises:
        EnvironmentLacksError: the processes differ, or the clock is real. BadInputError: the run has a feature that
            several processes do not support; KeyProblem if a key asks for it.
    """
    if processes.count == 1:
        return
    if spec.options.clock != "virtual":
        raise EnvironmentLacksError(
            "mpirun: several processes run the virtual clock only: use --clock virtual, or leave mpirun out"
        )
    if has_captures:
        raise BadInputError("a run of several processes captures nothing: leave it out, or mpirun", place="--pcap")
    if spec.options.observe.captures:
        raise KeyProblem("observe.captures", "a run of several processes captures nothing: leave it out, or mpirun")
    for key in ("state_at", "state_series"):
        if getattr(spec.options.observe, key):
            raise KeyProblem(f"observe.{key}", "a run of several processes keeps no states: leave it out, or mpirun")
    if spec.options.telemetry.is_on:
        raise KeyProblem("telemetry.mode", "a run of several processes collects no reports: leave it out, or mpirun")
    if spec.options.fidelity.has_segments:
        raise KeyProblem(
            "fidelity.segment",
            "a run of several processes has packets, not segments: leave it out, or mpirun",
        )
    if spec.options.fidelity.fast_forward is not None:
        raise KeyProblem(
            "fidelity.fast_forward",
            "a run of several processes repeats no operations: leave it out, or mpirun",
        )
    if spec.options.controller.controller_class is not None:
        raise KeyProblem(
            "controller.class",
            "a run of several processes has no controller of yours: leave it out, or mpirun",
        )
    _require_same(processes, spec)


def _require_same(processes: Processes, spec: RunSpec) -> None:
    """Raise EnvironmentLacksError unless all processes run the same Weft, Python, machine type and scenario."""
    of_run = repr((spec.name, spec.fabric.parameters, spec.options, spec.traffic)).encode()
    own = {
        "Weft": version_of([PACKAGE, P4_DIRECTORY], (".py", ".p4", ".so")),
        "Python": platform.python_version(),
        "machine": f"{platform.machine()}, {sys.byteorder} endian",
        "scenario": hashlib.sha256(of_run).hexdigest()[:16],
    }
    first, *others = of_all(processes, "what it runs", {"host": platform.node(), **own})
    for number, other in enumerate(others, 1):
        different = [name for name in own if other[name] != first[name]]
        if different:
            raise EnvironmentLacksError(
                f"processes 0 (on {first['host']}) and {number} (on {other['host']}) differ in: {', '.join(different)}",
                valid="the same Weft, and the same files at the same places, on all machines",
            )
