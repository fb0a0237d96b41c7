"""Section of a scenario file on how the hosts' queue pairs send."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from weft.engine import (
    CongestionNeeds,
    ExtensionError,
    congestion_control_kind,
    congestion_control_names,
    make_congestion_control,
)
from weft.hints import did_you_mean
from weft.quantities.definitions import NUMBER, RATE, SIZE, TIME, PositiveTime, Quantity, Time, whole
from weft.quantities.units import shown
from weft.scenario.values import DataClass, Section
from weft.traffic.class_reference import absolute_reference, is_class_reference, short_reference
from weft.traffic.extensions import congestion_needs
from weft.traffic.transport_settings import (
    DEFAULT_CONGESTION_CONTROL,
    DEFAULT_OUTSTANDING_READS,
    MAX_SPRAY_PATHS,
    PATHS,
    CongestionSettings,
    TransportSettings,
    preset_of,
)

# A parameter's unit ends the engine's name for it; a scenario leaves it out and writes the unit with the value.
_UNITS = {"_ps": TIME, "_bps": RATE.between(1000), "_bytes": SIZE.between(0)}
_PLAIN = NUMBER.between(-1e15, 1e15)
_ANY_PATH: dict[str, Any] = {"line_rate_bps": 10**11, "base_round_trip_ps": 10**7, "frame_bytes": 1152}


class CongestionSection(Section):
    """Congestion control of the connections with data in a class."""

    congestion_control: str = DEFAULT_CONGESTION_CONTROL
    """One of Weft's, or path/to/file.py:Class, a `weft.CongestionControl` of yours."""
    preset: str | None = Field(None, validate_default=True)
    """A set of parameters that the congestion control declares; by default its first."""
    parameters: dict[str, Any] = Field(default={}, validate_default=True)
    """Parameters of the congestion control, such as `{increase_timer: 55us}`; the rest comes from the preset.

    Your own class gets them as keyword arguments.
    """

    @field_validator("congestion_control")
    @classmethod
    def _check_name(cls, name: str) -> str:
        return _known_or_class("congestion control", name, congestion_control_names())

    @field_validator("preset")
    @classmethod
    def _check_preset(cls, name: str | None, info: ValidationInfo) -> str | None:
        if "congestion_control" not in info.data:
            return name
        preset = preset_of(info.data["congestion_control"], name)
        return preset.name if preset else None

    @field_validator("parameters")
    @classmethod
    def _check_parameters(cls, parameters: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if "congestion_control" in info.data:
            name = info.data["congestion_control"]
            if is_class_reference(name):
                return parameters
            make_congestion_control(name, **_ANY_PATH, parameters=native_parameters(name, parameters))
        return parameters

    def congestion_settings(self) -> CongestionSettings:
        """Return the hosts' settings."""
        name, parameters = self.congestion_control, self.parameters
        if is_class_reference(name):
            # Hosts of the real clock are processes of their own.
            name = absolute_reference(name, Path())
        else:
            parameters = native_parameters(name, parameters)
        return CongestionSettings(name, parameters, self.preset)


class TransportSection(CongestionSection):
    """The RC queue pairs of all hosts."""

    retransmission: Literal["go-back-n", "selective-repeat"] = "go-back-n"
    """Packets sent again after a loss."""
    retransmission_timeout: PositiveTime | None = None
    """By default as long as the path needs: four round trips and the time to drain one full queue; with PFC or credits,
    the memory of all switches on the longest path."""
    reordering_window: Time | None = None
    """By how much later a packet may have been sent that overtakes another without its counting as lost. By default
    nothing on one path; a round trip where hosts or switches spray; and the retransmission timeout where they do so in
    a class that PFC or credits keep from being lost: only a queue can hold a packet up there."""
    path: str = "flow"
    """How packets choose among equal paths: `flow`, `flowlet`, `spray`, or a `weft.PathChoice` of yours."""
    path_parameters: dict[str, Any] = Field(default={})
    """Keyword arguments of a choice of path of yours."""
    spray_paths: Annotated[int, whole(1, MAX_SPRAY_PATHS)] = MAX_SPRAY_PATHS
    """Entropies that `spray` draws from."""
    flowlet_gap: PositiveTime | None = None
    """A pause so long lets `flowlet` choose again; by default a round trip."""
    ack_interval: Annotated[int, whole(1, 1024)] | None = None
    """Packets that ask for an acknowledgement together; by default as the congestion control needs."""
    max_outstanding_reads: Annotated[int, whole(1, 128)] = DEFAULT_OUTSTANDING_READS
    """READs that a queue pair has under way at once; further ones wait."""
    cnp_interval: Time | None = None
    """A receiver's CNPs for a flow come at most so often; by default as the preset has it."""
    connections: Literal["fresh", "kept"] = "fresh"
    """`fresh` ones for every run of an item of the traffic, so that its figures do not depend on earlier runs, or
    `kept` with all that they have learnt."""
    classes: dict[DataClass, CongestionSection] = Field(default={})
    """Separate congestion controls for some classes of data."""

    @field_validator("path")
    @classmethod
    def _check_path_name(cls, name: str) -> str:
        return _known_or_class("choice of path", name, PATHS)

    @model_validator(mode="after")
    def _check_path(self) -> TransportSection:
        if self.path == "spray" and self.retransmission != "selective-repeat":
            raise ValueError("path: spray reorders packets, which needs retransmission: selective-repeat")
        for each in self.congestion_controls:
            if not is_class_reference(each):
                self.check_path(each, congestion_needs(each))
        if self.path_parameters and not is_class_reference(self.path):
            raise ValueError(f"path_parameters: {self.path} has none; they are for path/to/file.py:Class")
        return self

    @property
    def congestion_controls(self) -> list[str]:
        """The congestion controls of all classes."""
        names = (each.congestion_control for each in (self, *self.classes.values()))
        return list(dict.fromkeys(names))

    def check_path(self, congestion_control: str, needs: CongestionNeeds) -> None:
        """Check that the choice of path suits a congestion control. Raises ExtensionError."""
        if needs.one_path and self.path == "spray":
            raise ExtensionError(
                f"path: spray does not go with {short_reference(congestion_control)}, which needs all packets of a "
                "flow on one path"
            )

    def settings(
        self,
        least_timeout_ps: int = 0,
        sprayed_by_switches: bool = False,
        lossless_classes: tuple[int, ...] = (),
    ) -> TransportSettings:
        """Return the hosts' settings; unless the scenario says, no timeout is below `least_timeout_ps`.

        `sprayed_by_switches`: packets of a flow overtake each other. `lossless_classes`: of these none is dropped.
        """
        own, is_own_path = self.congestion_settings(), is_class_reference(self.path)
        return TransportSettings(
            congestion_control=own.congestion_control,
            parameters=own.parameters,
            preset=own.preset,
            retransmission=self.retransmission,
            retransmission_timeout_ps=self.retransmission_timeout or least_timeout_ps or None,
            reordering_window_ps=self.reordering_window,
            sprayed_by_switches=sprayed_by_switches,
            lossless_classes=lossless_classes,
            path=absolute_reference(self.path, Path()) if is_own_path else self.path,
            path_parameters=self.path_parameters,
            spray_paths=self.spray_paths,
            flowlet_gap_ps=self.flowlet_gap,
            ack_interval_packets=self.ack_interval,
            max_outstanding_reads=self.max_outstanding_reads,
            cnp_interval_ps=self.cnp_interval,
            classes={number: section.congestion_settings() for number, section in self.classes.items()},
        )


def native_parameters(congestion_control: str, parameters: dict[str, Any]) -> dict[str, float]:
    """Return parameters by the engine's names and in its units. Raises ValueError for unknown ones and bad values."""
    declared = congestion_control_kind(congestion_control).parameters
    names = {without_unit(parameter.name): parameter.name for parameter in declared}
    native = {}
    for key, value in parameters.items():
        if key not in names:
            raise ValueError(
                f"{congestion_control} has no parameter '{key}'; {did_you_mean(key, sorted(names))}"
            )
        quantity = parameter_quantity(names[key])
        try:
            is_switch = quantity is _PLAIN and isinstance(value, bool)
            native[names[key]] = float(value if is_switch else quantity.read(value))
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    return native


def parameter_quantity(name: str) -> Quantity:
    """Return how a scenario writes values of a parameter, by the unit that ends the engine's name for it."""
    return next((each for unit, each in _UNITS.items() if name.endswith(unit)), _PLAIN)


def _known_or_class(what: str, name: str, known: Sequence[str]) -> str:
    if name in known or is_class_reference(name):
        return name
    raise ValueError(f"no {what} {shown(name)} (valid: {', '.join(known)}, or path/to/file.py:Class)")


def without_unit(name: str) -> str:
    """Return a scenario's name for a parameter of the engine's."""
    for unit in (*_UNITS, "_packets"):
        name = name.removesuffix(unit)
    return name
