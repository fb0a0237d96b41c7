"""The P4 programs of a fabric's switches: one for all, or some switches with programs of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from weft.controller.pipeline import Pipeline
from weft.scenario.options import FabricOptions
from weft.scenario.program import Program, compile_program
from weft.scenario.switch_choice import by_switch
from weft.topologies import FabricSpec
from weft.topologies.fabric import DEFAULT_TREE_CHILDREN


@dataclass(frozen=True)
class Programs:
    """The program of every switch, by its name; switches with the same file share one object."""

    of_switch: Mapping[str, Program]

    @cached_property
    def distinct(self) -> tuple[Program, ...]:
        """The programs, each once; the first switch's first."""
        return tuple(dict.fromkeys(self.of_switch.values()))

    @cached_property
    def pipelines(self) -> dict[str, Pipeline]:
        """Pipelines for the controller, by switch; switches with the same program share one object."""
        loaded = {each: Pipeline.load(each.p4info, each.json, each.p4info_bytes) for each in self.distinct}
        return {name: loaded[program] for name, program in self.of_switch.items()}

    @property
    def p4_hash(self) -> str:
        """The hash of the program; of several, over all switches' names and hashes."""
        if len(self.distinct) == 1:
            return self.distinct[0].p4_hash
        each = "".join(f"{name} {program.p4_hash}\n" for name, program in self.of_switch.items())
        return hashlib.sha256(each.encode()).hexdigest()


def program_files(fabric: FabricSpec, options: FabricOptions) -> dict[str, tuple[Path, str]]:
    """Return each switch's program and the key of the scenario that names it. Raises KeyProblem."""
    chosen = {choice: (path, f"programs.{choice}") for choice, path in options.programs.items()}
    own = by_switch(fabric, chosen, "programs")
    return {switch.name: own.get(switch.name, (options.p4, "p4")) for switch in fabric.switches}


def macros_of(fabric: FabricSpec, options: FabricOptions) -> dict[str, str]:
    """Return what the preprocessor of a fabric's programs is to define."""
    if fabric.tree_children == DEFAULT_TREE_CHILDREN:
        return options.macros
    return options.macros | {"AGGREGATION_CHILDREN": str(fabric.tree_children)}


def compile_programs(fabric: FabricSpec, options: FabricOptions, directory: Path) -> Programs:
    """Compile the programs of a fabric's switches to `directory`, each file once. Raises as `compile_program`."""
    files = program_files(fabric, options)
    compiled: dict[Path, Program] = {}
    for path, key in files.values():
        if path not in compiled:
            # Files of different folders may share a name.
            folder = directory / f"program-{len(compiled)}" if compiled else directory
            folder.mkdir(exist_ok=True)
            compiled[path] = compile_program(path, folder, options.compiler, macros_of(fabric, options), key)
    return Programs({name: compiled[path] for name, (path, _) in files.items()})
