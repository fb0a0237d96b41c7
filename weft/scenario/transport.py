"""Section of a scenario file on how the hosts' queue pairs send."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from engine import congestion_control_names, congestion_parameter_names, make_congestion_control
from traffic.class_reference import absolute_reference, is_class_reference
from traffic.transport_settings import (
    DEFAULT_CONGESTION_CONTROL,
    MAX_SPRAY_PATHS,
    PATHS,
    TransportSettings,
    preset_of,
)
from weft.errors import did_you_mean
from weft.scenario.values import Section, TimePs
from weft.units import parse_rate_bps, parse_size_bytes, parse_time_ps

# A parameter's unit ends the engine's name for it; a scenario leaves it out and writes the unit with the value.
_UNITS = {"_ps": parse_time_ps, "_bps": parse_rate_bps, "_bytes": parse_size_bytes}
_ANY_PATH: dict[str, Any] = {"line_rate_bps": 10**11, "base_round_trip_ps": 10**7, "frame_bytes": 1152}


class TransportSection(Section):
    """The RC queue pairs of all hosts.

    `congestion_control` is one of Weft's; `parameters` are its, without the unit that ends the engine's name for them
    (`increase_timer: 55us`); those left out are the `preset`'s (of dcqcn: hpcc-comparison, connectx, paper-2015), made
    for the rate and round trip of the fabric. Or it is path/to/file.py:Class, a user's `weft.CongestionControl`, and
    `parameters` are the class's keyword arguments.
    `path`, too, may be a class: a user's `weft.PathChoice`, with `path_parameters`.

    The other keys go with either. `reordering_window`: by how much later a packet may have been sent that overtakes
    another without its counting as lost. `ack_interval`: packets that ask for an acknowledgement together.
    `cnp_interval`: a receiver's CNPs for a flow come at most so often; by default as the preset has it.
    """

    congestion_control: str = DEFAULT_CONGESTION_CONTROL
    preset: str | None = Field(None, validate_default=True)
    parameters: dict[str, Any] = Field(default={}, validate_default=True)
    retransmission: Literal["go-back-n", "selective-repeat"] = "go-back-n"
    retransmission_timeout: TimePs | None = Field(None, gt=0)
    reordering_window: TimePs | None = None
    path: str = "flow"
    path_parameters: dict[str, Any] = Field(default={})
    spray_paths: int = Field(MAX_SPRAY_PATHS, ge=1, le=MAX_SPRAY_PATHS)
    flowlet_gap: TimePs | None = Field(None, gt=0)
    ack_interval: int | None = Field(None, ge=1, le=1024)
    cnp_interval: TimePs | None = None

    @field_validator("congestion_control")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if name not in congestion_control_names() and not is_class_reference(name):
            raise ValueError(
                f"no congestion control has this name; {did_you_mean(name, congestion_control_names())}, "
                "or path/to/file.py:Class"
            )
        return name

    @field_validator("preset")
    @classmethod
    def _check_preset(cls, name: str | None, info: ValidationInfo) -> str | None:
        if "congestion_control" not in info.data:
            return name
        preset = preset_of(info.data["congestion_control"], name)
        return preset.name if preset else None

    @field_validator("path")
    @classmethod
    def _check_path_name(cls, name: str) -> str:
        if name not in PATHS and not is_class_reference(name):
            raise ValueError(f"no such choice of path; {did_you_mean(name, PATHS)}, or path/to/file.py:Class")
        return name

    @field_validator("parameters")
    @classmethod
    def _check_parameters(cls, parameters: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if "congestion_control" in info.data:
            name = info.data["congestion_control"]
            if is_class_reference(name):
                return parameters
            make_congestion_control(name, **_ANY_PATH, parameters=native_parameters(name, parameters))
        return parameters

    @model_validator(mode="after")
    def _check_path(self) -> TransportSection:
        if self.path == "spray" and self.retransmission != "selective-repeat":
            raise ValueError("path: spray reorders packets, which needs retransmission: selective-repeat")
        if self.path == "spray" and self.congestion_control == "hpcc":
            raise ValueError("path: spray does not go with hpcc, which compares INT of one path")
        if self.path_parameters and not is_class_reference(self.path):
            raise ValueError(f"path_parameters: {self.path} has none; they are for path/to/file.py:Class")
        return self

    def settings(self, least_timeout_ps: int = 0) -> TransportSettings:
        """Return what the hosts are told; unless the scenario says, no timeout is below `least_timeout_ps`."""
        name, parameters = self.congestion_control, self.parameters
        if is_class_reference(name):
            # Hosts of the real clock are processes of their own.
            name = absolute_reference(name, Path())
        else:
            parameters = native_parameters(name, parameters)
        is_own_path = is_class_reference(self.path)
        return TransportSettings(
            congestion_control=name,
            parameters=parameters,
            preset=self.preset,
            retransmission=self.retransmission,
            retransmission_timeout_ps=self.retransmission_timeout or least_timeout_ps or None,
            reordering_window_ps=self.reordering_window,
            path=absolute_reference(self.path, Path()) if is_own_path else self.path,
            path_parameters=self.path_parameters,
            spray_paths=self.spray_paths,
            flowlet_gap_ps=self.flowlet_gap,
            ack_interval_packets=self.ack_interval,
            cnp_interval_ps=self.cnp_interval,
        )


def native_parameters(congestion_control: str, parameters: dict[str, Any]) -> dict[str, float]:
    """Return parameters by the engine's names and in its units. Raises ValueError for unknown ones and bad values."""
    names = {_without_unit(name): name for name in congestion_parameter_names(congestion_control)}
    native = {}
    for key, value in parameters.items():
        if key not in names:
            raise ValueError(
                f"{congestion_control} has no parameter '{key}'; {did_you_mean(key, sorted(names))}"
            )
        parse = next((parse for unit, parse in _UNITS.items() if names[key].endswith(unit)), float)
        try:
            native[names[key]] = float(parse(value))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{key}: {error}") from None
    return native


def _without_unit(name: str) -> str:
    for unit in (*_UNITS, "_packets"):
        name = name.removesuffix(unit)
    return name
