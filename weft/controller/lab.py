"""Finds the switches of a running lab through its state file or a given address."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.controller.errors import ControllerError, SettingError
from weft.controller.features.kind import DEFAULT_HASH_SEED, DEFAULT_ROUTING
from weft.controller.grpc_targets import GrpcTarget
from weft.controller.pipeline import Pipeline
from weft.controller.target import EMBEDDED, TargetFacts, target_facts
from weft.controller.tenants import NO_TENANTS, TenantSettings, tenant_from
from weft.topologies import FabricSpec, TopologyError, from_parameters

DEFAULT_STATE_FILE = Path("/run/weft/lab.json")


class NoLabError(ControllerError):
    """No lab runs on this machine and no address was given, or the lab's state file is unusable."""


@dataclass(frozen=True)
class Lab:
    """The switches' addresses and facts about the lab; a switch given by its address has no fabric.

    `interface_group` identifies the lab's interfaces among others with the same names (0: the lab has none).
    `pipelines` are the programs of switches with a known P4Info.
    `operations` is the path of the controller's request socket, empty if there is none.
    `dropped_packet_ins` counts packets of each switch that the controller dropped; None if unknown.
    `routing` is the kind of routing, `hash_seed` seeds the hashes, `tenants` are the tenants and their quotas.
    `dilation` is how many times slower than real time the lab's emulated time passes.
    """

    targets: dict[str, GrpcTarget]
    fabric: FabricSpec | None = None
    pipelines: Mapping[str, Pipeline] = field(default_factory=dict)
    facts: TargetFacts = EMBEDDED
    interface_group: int = 0
    operations: str = ""
    dropped_packet_ins: Mapping[str, int] | None = None
    routing: str = DEFAULT_ROUTING
    hash_seed: int = DEFAULT_HASH_SEED
    tenants: TenantSettings = NO_TENANTS
    dilation: float = 1.0

    def select(self, names: tuple[str, ...]) -> list[str]:
        """Return the named switches, or all switches if there are no names.

        Raises:
            SettingError: a switch is unknown.

        """
        for name in names:
            if name not in self.targets:
                raise SettingError(f"unknown switch {name!r}", valid=self.targets)
        return list(names or self.targets)


def state_file() -> Path:
    """Return the state file's path; WEFT_STATE_FILE overrides it."""
    return Path(os.environ.get("WEFT_STATE_FILE", DEFAULT_STATE_FILE))


def lab_from_state(path: Path, p4info: Path | None = None) -> Lab:
    """Read the state file that a running lab writes.

    Raises:
        NoLabError: the file does not exist or is not a state file.
        PipelineError: its P4Info cannot be read.

    """
    try:
        state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        targets = {
            name: GrpcTarget(str(address), int(device_id)) for name, (address, device_id) in state["grpc"].items()
        }
        fabric = from_parameters(state["fabric"]) if state.get("fabric") else None
        facts = target_facts(state.get("target") or EMBEDDED.name, **state.get("units", {}))
        others = {name: str(info) for name, (info, _) in state.get("programs", {}).items()}
        shared = p4info or state.get("p4info")
        programs = {name: p4info or others.get(name, shared) for name in targets} if shared else {}
        group = int(state.get("interface_group", 0))
        routing = str(state.get("routing") or DEFAULT_ROUTING)
        hash_seed = int(state.get("hash_seed", DEFAULT_HASH_SEED))
        operations = str(state.get("operations", ""))
        dilation = float(state.get("dilation", 1.0))
        dropped = {name: int(count) for name, count in state.get("dropped_packet_ins", {}).items()}
        tenants = TenantSettings(tuple(tenant_from(name, quotas) for name, quotas in state.get("tenants", {}).items()))
    except FileNotFoundError:
        raise NoLabError(
            f"no lab runs on this machine (no {path}); start one, or give --address and --device-id"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, TopologyError) as error:
        raise NoLabError(f"{path} is not the state file of a lab: {error!r}") from None
    if not targets:
        raise NoLabError(f"the lab of {path} has no switches yet")
    return Lab(
        targets,
        fabric,
        _pipelines(programs),
        facts,
        group,
        operations,
        dropped,
        routing=routing,
        hash_seed=hash_seed,
        tenants=tenants,
        dilation=dilation,
    )


def lab_at(address: str, device_id: int, p4info: Path | None) -> Lab:
    """Describe one switch by its address."""
    name = f"device-{device_id}"
    pipelines = {name: Pipeline.load(p4info)} if p4info else {}
    return Lab({name: GrpcTarget(address, device_id)}, pipelines=pipelines)


def _pipelines(programs: Mapping[str, str | Path]) -> dict[str, Pipeline]:
    """Return the programs of switches from their P4Info files; each file is read once."""
    loaded = {path: Pipeline.load(path) for path in dict.fromkeys(programs.values())}
    return {name: loaded[path] for name, path in programs.items()}
