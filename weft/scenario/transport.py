"""Section of a scenario file on how the hosts' queue pairs send."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, ValidationInfo, field_validator

from engine import congestion_control_names, congestion_parameter_names, make_congestion_control
from traffic.class_reference import absolute_reference, is_class_reference
from traffic.transport_settings import DEFAULT_CONGESTION_CONTROL, TransportSettings
from weft.errors import did_you_mean
from weft.scenario.values import Section
from weft.units import parse_rate_bps, parse_size_bytes, parse_time_ps

# A parameter's unit ends the engine's name for it; a scenario leaves it out and writes the unit with the value.
_UNITS = {"_ps": parse_time_ps, "_bps": parse_rate_bps, "_bytes": parse_size_bytes}
_ANY_PATH = {"line_rate_bps": 10**11, "base_round_trip_ps": 10**7, "frame_bytes": 1152}


class TransportSection(Section):
    """The RC queue pairs of all hosts.

    `congestion_control` is one of Weft's; `parameters` are its, without the unit that ends the engine's name for them
    (`increase_timer: 55us`); those left out are made for the rate and round trip of the fabric. Or it is
    path/to/file.py:Class, a user's `weft.CongestionControl`, and `parameters` are the class's keyword arguments.
    """

    congestion_control: str = DEFAULT_CONGESTION_CONTROL
    parameters: dict[str, Any] = Field(default={}, validate_default=True)

    @field_validator("congestion_control")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if name not in congestion_control_names() and not is_class_reference(name):
            raise ValueError(
                f"no congestion control has this name; {did_you_mean(name, congestion_control_names())}, "
                "or path/to/file.py:Class"
            )
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

    def settings(self) -> TransportSettings:
        """Return what the hosts are told."""
        if is_class_reference(self.congestion_control):
            # Hosts of the real clock are processes of their own.
            return TransportSettings(absolute_reference(self.congestion_control, Path()), self.parameters)
        return TransportSettings(
            congestion_control=self.congestion_control,
            parameters=native_parameters(self.congestion_control, self.parameters),
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
