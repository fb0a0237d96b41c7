"""The configuration of the switch daemon: checked and frozen; errors name the place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from weft.cache import UnreadableFileError, read_bytes
from weft.errors import Refusal, translated
from weft.quantities.traffic_classes import CLASSES
from weft.switch.p4runtime.tls import ServerTls

DEFAULT_QUEUE_CAPACITY_BYTES = 512 * 1024
UNSPLIT_BYTES = 2**63 - 1
"""More than any queue holds."""
DEFAULT_TRIMMED_BYTES = 128
"""SAI's default of SAI_SWITCH_ATTR_PACKET_TRIM_SIZE."""
DEFAULT_TRIM_RESERVED_BYTES = 64 * 1024
SMALLEST_TRIMMED_BYTES = 64
"""An Ethernet frame (kSmallestBytes in engine/links/trimming.hpp)."""
MAX_CONFIG_BYTES = 256 << 20
MAX_PORT = 511
"""The largest port number of 9 bits. By default 510 is the CPU port and 511 drops."""


class ConfigError(Refusal, ValueError):
    """A configuration that cannot be used; the message names the place."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


_PriorityClass = Annotated[int, Field(ge=0, lt=CLASSES)]
_Dscp = Annotated[int, Field(ge=0, lt=64)]


class BufferConfig(_Frozen):
    """Packet memory shared by a switch's ports, in place of separate queue capacities; lists are by class."""

    capacity_bytes: int = Field(gt=0)
    reserved_bytes: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        (0,) * CLASSES, min_length=CLASSES, max_length=CLASSES
    )
    alpha: tuple[Annotated[float, Field(gt=0)], ...] = Field((1.0,) * CLASSES, min_length=CLASSES, max_length=CLASSES)


class PfcWatchdogConfig(_Frozen):
    """PFC watchdog of a port; see `PortMac.enable_watchdog`."""

    detection_ps: int = Field(gt=0)
    restoration_ps: int = Field(gt=0)
    action: Literal["drop", "forward", "alert"] = "drop"


class PfcConfig(_Frozen):
    """Priority flow control of a port: pause the far end above `xoff_bytes`, or `alpha` times the free memory."""

    classes: tuple[_PriorityClass, ...] = Field(min_length=1)
    source_mac: str
    xoff_bytes: int = Field(default=0, ge=0)
    alpha: float = Field(default=0.0, ge=0)
    hysteresis_bytes: int = Field(default=0, ge=0)
    headroom_bytes: int = Field(ge=0)
    pause_quanta: int = Field(default=0xFFFF, ge=1, le=0xFFFF)
    watchdog: PfcWatchdogConfig | None = None


class CreditsConfig(_Frozen):
    """Credit-based flow control of a port: `buffer_bytes` for each class, here and at the far end."""

    classes: tuple[_PriorityClass, ...] = Field(min_length=1)
    source_mac: str
    buffer_bytes: int = Field(gt=0)
    largest_frame_bytes: int = Field(gt=0)


class LinkRetryConfig(_Frozen):
    """Retry of the link that a port sends into; see `Link.enable_retry`."""

    buffer_bytes: int = Field(gt=0)
    timeout_ps: int = Field(gt=0)
    attempts: int = Field(ge=1, le=255)
    response_ps: int = Field(default=0, ge=0)
    largest_frame_bytes: int = Field(gt=0)


class TrimmingConfig(_Frozen):
    """What a port does instead of dropping a packet of `classes` that finds no room; see `set_trimming` of ports."""

    classes: tuple[_PriorityClass, ...] = Field(min_length=1)
    size_bytes: int = Field(default=DEFAULT_TRIMMED_BYTES, ge=SMALLEST_TRIMMED_BYTES)
    dscp: _Dscp
    queue: _PriorityClass
    trimmable_dscps: tuple[_Dscp, ...] = Field(min_length=1)
    reserved_bytes: int = Field(default=DEFAULT_TRIM_RESERVED_BYTES, ge=0)

    @model_validator(mode="after")
    def _check(self) -> TrimmingConfig:
        if self.queue in self.classes:
            raise ValueError(f"queue {self.queue} is one of the classes that trim, {list(self.classes)}")
        if self.dscp in self.trimmable_dscps:
            raise ValueError(f"dscp {self.dscp} is one of trimmable_dscps, {list(self.trimmable_dscps)}")
        return self


class SwitchingConfig(_Frozen):
    """Latency of a switch for a packet, from its last bit or (`cut_through`) its last header."""

    latency_ps: int = Field(default=0, ge=0)
    cut_through: bool = False


class FaultsConfig(_Frozen):
    """Faults in one direction of a link; see `engine.Link`."""

    loss: float = Field(default=0.0, ge=0, le=1)
    duplicate: float = Field(default=0.0, ge=0, le=1)
    delay_probability: float = Field(default=0.0, ge=0, le=1)
    extra_delay_ps: int = Field(default=0, ge=0)
    bit_error_rate: float = Field(default=0.0, ge=0, le=1)

    @property
    def any(self) -> bool:
        """Whether any fault can occur."""
        return bool(self.loss or self.duplicate or self.delay_probability or self.bit_error_rate)


_NO_FAULTS = FaultsConfig()


class PortConfig(_Frozen):
    """A port; without an interface it ends an internal link. `rate_bps` 0 is unpaced.

    While more than `split_depth_bytes` wait in a class, segments leave packet by packet.

    Delay, `faults` and `retry` apply to frames that the port sends. On a host uplink delay and `retry` also apply to
    the host's frames, which have `uplink_faults`.
    """

    port: int = Field(ge=0, le=MAX_PORT)
    interface: str | None = Field(default=None, min_length=1, max_length=15)
    rate_bps: int = Field(default=0, ge=0)
    delay_ps: int = Field(default=0, ge=0)
    queue_capacity_bytes: int = Field(default=DEFAULT_QUEUE_CAPACITY_BYTES, gt=0)
    host_uplink: bool = False
    faults: FaultsConfig = _NO_FAULTS
    uplink_faults: FaultsConfig = _NO_FAULTS
    quantum_bytes: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        (0,) * CLASSES, min_length=CLASSES, max_length=CLASSES
    )
    split_depth_bytes: int = Field(default=UNSPLIT_BYTES, ge=0, le=UNSPLIT_BYTES)
    pfc: PfcConfig | None = None
    credits: CreditsConfig | None = None
    trimming: TrimmingConfig | None = None
    retry: LinkRetryConfig | None = None


class SwitchConfig(_Frozen):
    """A switch and its ports. Queue depths are in cells of `cell_bytes`, 80 times a power of two.

    `class_of_dscp`: the class in which the sender queued a frame that arrives by an interface, for flow control; frames
    with other DSCPs are charged to the class in which they are queued here.
    """

    device_id: int = Field(ge=0, lt=2**64)
    name: str = Field(min_length=1)
    cpu_port: int = Field(default=510, ge=0, le=511)
    drop_port: int = Field(default=511, ge=0, le=511)
    depth_unit: Literal["cells", "packets"] = "cells"
    cell_bytes: int = Field(default=80, ge=80)
    time_unit: Literal["ns", "us"] = "ns"
    ports: tuple[PortConfig, ...] = ()
    buffer: BufferConfig | None = None
    class_of_dscp: dict[_Dscp, _PriorityClass] = {}
    switching: SwitchingConfig | None = None

    @model_validator(mode="after")
    def _check(self) -> SwitchConfig:
        interfaces = [port.interface for port in self.ports if port.interface is not None]
        for interface in interfaces:
            if interfaces.count(interface) > 1:
                raise ValueError(f"interface {interface!r} of switch {self.name!r} is listed twice")
        numbers = [port.port for port in self.ports]
        for number in numbers:
            if numbers.count(number) > 1:
                raise ValueError(f"port {number} of switch {self.name!r} is listed twice")
            if number in (self.cpu_port, self.drop_port):
                raise ValueError(f"port {number} of switch {self.name!r} is its CPU or drop port")
        for port in self.ports:
            flow_control = [name for name in ("pfc", "credits") if getattr(port, name) is not None]
            if len(flow_control) > 1:
                raise ValueError(f"port {port.port} of switch {self.name!r} has PFC and credits: a port has one")
            if flow_control and self.buffer is None:
                raise ValueError(
                    f"port {port.port} of switch {self.name!r} has {flow_control[0]}, so the switch needs a buffer"
                )
        return self

    @property
    def interfaces_by_name(self) -> dict[str, int]:
        """Port numbers by the names of their interfaces."""
        return {port.interface: port.port for port in self.ports if port.interface is not None}

    def port(self, number: int) -> PortConfig | None:
        """The port with this number."""
        return next((port for port in self.ports if port.port == number), None)


class DaemonConfig(_Frozen):
    """All switches of a lab. `epoch_ns` is by CLOCK_MONOTONIC; None starts time now.

    The P4Runtime server also listens on `more_grpc_addresses`. There all device ids answer, without TLS, to processes
    of `grpc_users` (None: of all users of the machine).
    An internal link is (device, port, device, port).
    """

    epoch_ns: int | None = Field(default=None, ge=0)
    dilation: float = Field(default=1.0, gt=0)
    seed: int = Field(default=0, ge=0, lt=2**64)
    grpc_address: str = "127.0.0.1:9559"
    more_grpc_addresses: tuple[str, ...] = ()
    grpc_users: tuple[int, ...] | None = None
    grpc_tls: ServerTls | None = None
    realtime_priority: int = Field(default=0, ge=0, le=99)
    switches: tuple[SwitchConfig, ...] = Field(min_length=1)
    internal_links: tuple[tuple[int, int, int, int], ...] = ()

    def to_json(self) -> str:
        """Return the document that `parse_config` reads, without values at their defaults."""
        return self.model_dump_json(indent=1, exclude_defaults=True)

    @model_validator(mode="after")
    def _check(self) -> DaemonConfig:
        by_id = {switch.device_id: switch for switch in self.switches}
        if len(by_id) != len(self.switches):
            raise ValueError("two switches have the same device_id")
        if len({switch.name for switch in self.switches}) != len(self.switches):
            raise ValueError("two switches have the same name")
        ends = [end for a, b, c, d in self.internal_links for end in ((a, b), (c, d))]
        for device, number in ends:
            port = by_id[device].port(number) if device in by_id else None
            if port is None:
                raise ValueError(f"an internal link ends at port {number} of device {device}, which is not there")
            if port.interface is not None:
                raise ValueError(f"port {number} of device {device} has an interface and an internal link")
            if ends.count((device, number)) > 1:
                raise ValueError(f"port {number} of device {device} has two internal links")
        for switch in self.switches:
            for port in switch.ports:
                if port.host_uplink and port.interface is None:
                    raise ValueError(
                        f"port {port.port} of switch {switch.name!r} is a host uplink, so it needs an interface"
                    )
                if port.interface is None and (switch.device_id, port.port) not in ends:
                    raise ValueError(
                        f"port {port.port} of switch {switch.name!r} has neither interface nor internal link"
                    )
        return self


def parse_config(text: str | bytes) -> DaemonConfig:
    """Return the configuration in a JSON document. Raises ConfigError if it is invalid."""
    try:
        return DaemonConfig.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError(description(error)) from None


def description(error: ValidationError) -> str:
    """Return all problems with their places in one line, omitting a whole that is wrong only because of its parts."""
    errors = error.errors()
    inner = {each["loc"][:depth] for each in errors for depth in range(1, len(each["loc"]))}
    return "; ".join(_message(each) for each in errors if each["loc"] not in inner)


def _message(error: object) -> str:
    assert isinstance(error, dict)
    place = ".".join(str(part) for part in error["loc"])
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def read_config(path: Path) -> DaemonConfig:
    """Return the configuration in a file. Raises ConfigError if it cannot be read or used."""
    try:
        text = read_bytes(path, MAX_CONFIG_BYTES)
    except UnreadableFileError as error:
        raise ConfigError(error) from None
    except OSError as error:
        raise ConfigError(f"{error.strerror}", place=path) from None
    with translated(ConfigError, ConfigError, place=path):
        return parse_config(text)
