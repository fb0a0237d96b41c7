"""Section of a scenario file on how the hosts' queue pairs send."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import (
    ConfigDict,
    Field,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from weft.controller.features.bolt import BoltSettings
from weft.engine import (
    CongestionNeeds,
    CongestionParameter,
    ExtensionError,
    congestion_control_kind,
    congestion_control_names,
    make_congestion_control,
    make_path_choice,
    path_choice_kind,
)
from weft.errors import InvalidValueError, translated
from weft.hints import did_you_mean
from weft.quantities.definitions import PLAIN_NUMBER, quantity_of, without_unit
from weft.quantities.units import shown
from weft.scenario.places import KeyProblem
from weft.scenario.values import DataClass, FeatureSection, Section
from weft.traffic.class_reference import absolute_reference, is_class_reference, is_cpp_reference, short_reference
from weft.traffic.extensions import congestion_needs, engine_name
from weft.traffic.header_sizes import overhead_bytes
from weft.traffic.transport_settings import (
    MRC_DEFAULTS,
    PATHS,
    UET_DEFAULTS,
    CongestionSettings,
    TransportSettings,
    preset_of,
)
from weft.traffic.transports.registry import TRANSPORT_KINDS

if TYPE_CHECKING:
    from weft.scenario.options import FabricOptions

_FOLLOWS_CNPS = ("dcqcn",)
_ENGINE_TIMES_PS = (MRC_DEFAULTS["probe_interval_ps"], UET_DEFAULTS["pdc_idle_ps"])

_ANY_PATH: dict[str, Any] = {"line_rate_bps": 10**11, "base_round_trip_ps": 10**7, "frame_bytes": 1152}


class CongestionSection(Section, CongestionSettings):
    """Congestion control of the connections with data in a class."""

    model_config = ConfigDict(validate_default=True)

    @field_validator("congestion_control")
    @classmethod
    def _check_name(cls, name: str) -> str:
        return _known_or_class("congestion control", name, congestion_control_names())

    @field_validator("preset")
    @classmethod
    def _check_preset(cls, name: str | None, info: ValidationInfo) -> str | None:
        if "congestion_control" not in info.data or is_class_reference(info.data["congestion_control"]):
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

    def check_own_file(self, key: str) -> None:
        """Compile the control in C++ that this names, if any, and check its preset and parameters.

        Not while a scenario is parsed, which runs nothing of users. Raises KeyProblem.
        """
        if not is_cpp_reference(self.congestion_control):
            return
        with translated(ExtensionError, KeyProblem, f"{key}.congestion_control"):
            name = engine_name(self.congestion_control)
        assert name is not None
        with translated(ValueError, KeyProblem, f"{key}.preset"):
            preset = preset_of(self.congestion_control, self.preset)
        with translated(ValueError, KeyProblem, f"{key}.parameters"):
            parameters = native_parameters(name, self.parameters)
            make_congestion_control(
                name, **_ANY_PATH, parameters=parameters, preset="" if preset is None else preset.name
            )

    def congestion_settings(self) -> CongestionSettings:
        """Return the hosts' settings."""
        return self.as_declared(CongestionSettings, **self._for_hosts())

    def _for_hosts(self) -> dict[str, Any]:
        """Return the keys that hosts take in another form."""
        name, parameters = self.congestion_control, self.parameters
        # Hosts of the real clock are processes of their own.
        absolute = {"congestion_control": absolute_reference(name, Path())} if is_class_reference(name) else {}
        native = engine_name(name)
        return absolute | ({} if native is None else {"parameters": native_parameters(native, parameters)})


class TransportSection(FeatureSection, CongestionSection, TransportSettings):
    """The queue pairs of all hosts."""

    classes: dict[DataClass, CongestionSection] = Field(default={})
    """Separate congestion controls for some classes of data."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in_defaults(cls, given: Any) -> Any:
        name = given.get("protocol") if isinstance(given, dict) else None
        if not isinstance(name, str) or name not in TRANSPORT_KINDS:
            return given
        return {**TRANSPORT_KINDS[name].defaults_for(given), **given}

    @field_validator("protocol")
    @classmethod
    def _check_protocol_name(cls, name: str) -> str:
        return TRANSPORT_KINDS.named(name).name

    @field_validator("probe_interval", "pdc_idle", mode="wrap")
    @classmethod
    def _take_engine_default(cls, value: Any, read: ValidatorFunctionWrapHandler) -> Any:
        # The engine's default has no unit, which a value in a file needs; an equal number there is another object.
        return value if any(value is each for each in _ENGINE_TIMES_PS) else read(value)

    @field_validator("path")
    @classmethod
    def _check_path_name(cls, name: str) -> str:
        if is_cpp_reference(name):
            hint = "a choice of path in C++ is built in engine/paths/ (docs/howto/path-choice.md)"
            raise InvalidValueError(
                f"{shown(name)} is a file in C++", valid=f"{', '.join(PATHS)}, or path/to/file.py:Class", hint=hint
            )
        return _known_or_class("choice of path", name, PATHS)

    @model_validator(mode="after")
    def _check_protocol(self) -> TransportSection:
        fields, kind = type(self).model_fields, self.kind
        for key, declared in fields.items():
            if key in kind.own_keys or getattr(self, key) == declared.get_default(call_default_factory=True):
                continue
            if key in kind.lacks_keys or any(key in other.own_keys for other in TRANSPORT_KINDS.values()):
                raise ValueError(f"{key} does not go with protocol: {kind.name}")
        if not kind.has_cnps and (unfit := [each for each in self.congestion_controls if each in _FOLLOWS_CNPS]):
            raise ValueError(f"congestion_control: {unfit[0]} follows CNPs, which protocol: {kind.name} does not have")
        if self.retransmission not in kind.retransmissions:
            problem = f"retransmission: {self.retransmission} does not go with protocol: {kind.name}"
            raise InvalidValueError(problem, valid=kind.retransmissions)
        kind.check(self)
        return self

    @model_validator(mode="after")
    def _check_path(self) -> TransportSection:
        if self.sprays and self.retransmission != "selective-repeat":
            raise ValueError(f"path: {self.path} reorders packets, which needs retransmission: selective-repeat")
        for each in self.congestion_controls:
            if not is_class_reference(each):
                self.check_path(each, congestion_needs(each))
        if self.path == "flow" and self.path_parameters:
            raise ValueError("path_parameters: flow has none")
        if self.path != "flow" and not is_class_reference(self.path):
            make_path_choice(self.path, 0, self.path_keys | self._native_path_parameters(), **_ANY_PATH)
        return self

    def notified_classes(self, data_classes: Iterable[int]) -> tuple[int, ...]:
        """Return the classes with congestion controls that take notifications of switches."""

        def is_notified(number: int) -> bool:
            name = self.classes.get(number, self).congestion_control
            return not is_class_reference(name) and congestion_needs(name).notifications

        return tuple(filter(is_notified, data_classes))

    def of_features(self, options: FabricOptions) -> Iterator[object]:
        """Return which classes' senders switches notify, if any."""
        if classes := self.notified_classes(options.scheduling.data_classes):
            overhead = overhead_bytes(options.ip_version, int_telemetry=options.int_telemetry)
            frame_bytes = options.mtu_bytes + overhead
            threshold = frame_bytes if self.notification_threshold is None else self.notification_threshold
            yield BoltSettings(classes, threshold, frame_bytes)

    @property
    def congestion_controls(self) -> list[str]:
        """The congestion controls of all classes."""
        names = (each.congestion_control for each in (self, *self.classes.values()))
        return list(dict.fromkeys(names))

    def check_path(self, congestion_control: str, needs: CongestionNeeds) -> None:
        """Check that the choice of path suits a congestion control. Raises ExtensionError."""
        if needs.one_path and self.sprays:
            raise ExtensionError(
                f"path: {self.path} does not go with {short_reference(congestion_control)}, which needs all packets of "
                "a flow on one path"
            )

    def settings(self) -> TransportSettings:
        """Return the hosts' settings."""
        classes = {number: section.congestion_settings() for number, section in self.classes.items()}
        return self.as_declared(TransportSettings, **self._for_hosts(), classes=classes)

    def _for_hosts(self) -> dict[str, Any]:
        own = super()._for_hosts()
        if is_class_reference(self.path):
            return own | {"path": absolute_reference(self.path, Path())}
        return own | {"path_parameters": self._native_path_parameters()}

    def _native_path_parameters(self) -> dict[str, float]:
        if self.path == "flow":
            return {}
        return _native(self.path, path_choice_kind(self.path).parameters, self.path_parameters)


def native_parameters(congestion_control: str, parameters: dict[str, Any]) -> dict[str, float]:
    """Return parameters by the engine's names and in its units. Raises ValueError for unknown ones and bad values."""
    kind = congestion_control_kind(congestion_control)
    return _native(kind.name, kind.parameters, parameters)


def _native(algorithm: str, declared: Sequence[CongestionParameter], parameters: dict[str, Any]) -> dict[str, float]:
    names = {without_unit(parameter.name): parameter.name for parameter in declared}
    native = {}
    for key, value in parameters.items():
        if key not in names:
            raise ValueError(f"{algorithm} has no parameter '{key}'; {did_you_mean(key, sorted(names))}")
        quantity = quantity_of(names[key])
        try:
            is_switch = quantity is PLAIN_NUMBER and isinstance(value, bool)
            native[names[key]] = float(value if is_switch else quantity.read(value))
        except ValueError as error:
            raise InvalidValueError(error, place=key) from None
    return native


def _known_or_class(what: str, name: str, known: Sequence[str]) -> str:
    if name in known or is_class_reference(name):
        return name
    raise InvalidValueError(f"no {what} {shown(name)}", valid=f"{', '.join(known)}, or path/to/file.py:Class")
