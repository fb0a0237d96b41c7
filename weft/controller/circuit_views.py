"""Rows that show the configurations of a fabric's circuits."""

from __future__ import annotations

from weft.controller.errors import SettingError
from weft.controller.features.kind import Row
from weft.topologies import FabricSpec
from weft.topologies.circuits import CircuitConfiguration, CircuitPlan


def require_circuits(fabric: FabricSpec | None) -> CircuitPlan:
    """Return a lab's circuits. Raises SettingError: its fabric has none, or only a switch's address was given."""
    if fabric is None:
        raise SettingError("circuits need a running lab: the switch at --address does not know them")
    if fabric.circuits is None:
        raise SettingError("the fabric has no circuits (valid: fabrics of kind cubes or optical_core)")
    return fabric.circuits


def circuit_rows(fabric: FabricSpec | None) -> list[Row]:
    """Return a row for each configuration; raises as `require_circuits`."""
    plan = require_circuits(fabric)
    present = _joined(plan.configuration(plan.present))
    return [
        {
            "configuration": each.name,
            "in_force": each.name == plan.present,
            "circuits": len(each.circuits),
            "would_go": len(present - _joined(each)),
            "would_come": len(_joined(each) - present),
        }
        for each in plan.configurations
    ]


def _joined(configuration: CircuitConfiguration) -> set[frozenset[object]]:
    return {frozenset(circuit) for circuit in configuration.circuits}
