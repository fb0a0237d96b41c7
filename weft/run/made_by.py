"""Provenance of a run: all options, the program, the fabric, and effective defaults."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.clocks.lab import Lab
from weft.results.model import MadeBy
from weft.run.effective_parameters import effective_parameters
from weft.run.extensions import extension_hashes
from weft.traffic.class_reference import is_class_reference, short_reference
from weft.traffic.control import EndpointGroup


def made_by(
    lab: Lab, hosts: EndpointGroup, scenario: str | None, slot_count: int, collectives: Iterable[str]
) -> MadeBy:
    """Return the provenance of a lab's runs; `collectives` are the references of collectives that have run."""
    assert lab.options.clock is not None, "a description of a run has a clock"
    fabric = dict(lab.fabric.parameters)
    parameters = {
        **lab.options.as_dict(),
        "p4_hash": lab.programs.p4_hash,
        "fabric": fabric,
        "slots": slot_count,
        "extensions": extension_hashes([lab.options.transport], collectives),
        "effective": _effective_parameters(lab, hosts),
    }
    named = {} if scenario is None else {"scenario": scenario}
    return MadeBy(
        clock=lab.options.clock,
        seed=lab.options.seed,
        fabric=fabric,
        observe=lab.options.observe,
        parameters=parameters | named,
        **named,
    )


def _effective_parameters(lab: Lab, hosts: EndpointGroup) -> dict[str, Any]:
    transport = hosts.transport_in_force(lab.options.int_telemetry).settings
    shown = {name: _without_folders(transport[name]) for name in ("congestion_control", "path")}
    return effective_parameters(
        lab.fabric,
        lab.switch_configs,
        lab.settings(),
        lab.largest_frame_bytes,
        {**transport, **shown},
    )


def _without_folders(name: str) -> str:
    """Return the name of a congestion control or path for results: a user's class without its folder."""
    return short_reference(name) if is_class_reference(name) else name
