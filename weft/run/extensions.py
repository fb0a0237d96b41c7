"""Checks and hashes the users' classes that a scenario names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from weft.error_translation import raised_as_weft_errors
from weft.errors import translated
from weft.scenario.checks import check_telemetry
from weft.scenario.controller import ControllerSection
from weft.scenario.options import FabricOptions
from weft.scenario.places import KeyProblem
from weft.scenario.routing_checks import check_order
from weft.traffic.class_reference import is_class_reference
from weft.traffic.extensions import (
    ClassSpec,
    ExtensionError,
    PathProperties,
    congestion_control,
    congestion_needs,
    engine_name,
    make,
    path_choice,
)
from weft.traffic.transport_settings import CongestionSettings, TransportSettings

_ANY_PATH = PathProperties(line_rate_bps=10**11, base_round_trip_ps=10**7, frame_bytes=1152)


@raised_as_weft_errors()
def check_transport(options: FabricOptions) -> None:
    """Check the users' classes in the hosts' transport.

    Raises:
        BadInputError: a class cannot be used, or the options lack something it needs; says which and why.
    """
    transport = options.transport
    for number, section in (("", transport), *transport.classes.items()):
        section.check_own_file(f"transport.classes.{number}" if section is not transport else "transport")
    settings = transport.settings()
    own: Iterable[CongestionSettings | TransportSettings] = (settings, *settings.classes.values())
    for each in own:
        name = each.congestion_control
        if is_class_reference(name):
            if engine_name(name) is None:
                congestion_control(ClassSpec(name, each.parameters), _ANY_PATH)
            needs = congestion_needs(name)
            transport.check_path(name, needs)
            check_telemetry(options, name, needs)
            check_order(options, name, needs)
    if is_class_reference(settings.path):
        path_choice(ClassSpec(settings.path, settings.path_parameters), _ANY_PATH, np.random.default_rng(0))


def check_controller(section: ControllerSection) -> None:
    """Check the user's controller class, if any. Raises KeyProblem if it cannot be used."""
    if section.controller_class is not None:
        from weft.clocks.user_controller import Controller

        with translated(ExtensionError, KeyProblem, "controller.class"):
            make(ClassSpec(section.controller_class, section.parameters), Controller)


def extension_hashes(sections: Iterable[BaseModel], references: Iterable[str] = ()) -> dict[str, str]:
    """Return the SHA-256 of each file with classes that sections of a scenario or `references` name, by file name."""
    dumped = [*(section.model_dump(mode="json") for section in sections), *references]
    files = {Path(reference.rpartition(":")[0]) for reference in _references(dumped)}
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(files)}


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if is_class_reference(value):
            yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _references(each)
