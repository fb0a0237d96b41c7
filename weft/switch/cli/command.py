"""`weft switch`: one embedded switch in the foreground, with simple_switch_grpc's options."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from weft.command_errors import PrefixedCommand, say_error
from weft.quantities.traffic_classes import CLASSES, CONTROL_CLASS
from weft.switch.cli import bmv2_options, tls_options
from weft.switch.cli.foreground import Beside, Foreground, Options, StartError, alone
from weft.switch.cli.logs import LEVELS, LogOptions, set_up
from weft.switch.daemon.config import (
    DEFAULT_QUEUE_CAPACITY_BYTES,
    DEFAULT_TRIM_RESERVED_BYTES,
    DEFAULT_TRIMMED_BYTES,
    MAX_PORT,
    SMALLEST_TRIMMED_BYTES,
    ConfigError,
    DaemonConfig,
    PortConfig,
    SwitchConfig,
    TrimmingConfig,
    description,
)
from weft.switch.daemon.process import EXIT_BAD_INPUT, EXIT_ENVIRONMENT
from weft.switch.p4runtime.service import DEFAULT_ADDRESS

DEFAULT_DEVICE_ID = 0
_CLASS = click.IntRange(0, CLASSES - 1)
_DSCP = click.IntRange(0, 63)
_LOGGER = logging.getLogger(__name__)


class InterfaceType(click.ParamType[tuple[int, str]]):
    """PORT@INTERFACE."""

    name = "PORT@INTERFACE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, str]:
        """Split the port number from the interface."""
        number, separator, interface = str(value).partition("@")
        if not separator or not number.isdecimal() or not interface:
            self.fail(f"{value!r} is not PORT@INTERFACE, such as 1@veth0", param, ctx)
        if int(number) > MAX_PORT:
            self.fail(f"port {number} of {value!r} is out of range (valid: 0 to {MAX_PORT})", param, ctx)
        return int(number), interface


class AddressType(click.ParamType[str]):
    """HOST:PORT, or another gRPC address with its scheme, such as unix:/run/switch.sock."""

    name = "HOST:PORT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse an address without a port, as gRPC would default to 443."""
        text = str(value)
        if not text.startswith("unix") and not text.rpartition(":")[2].isdecimal():
            self.fail(f"{text!r} is not HOST:PORT, such as {DEFAULT_ADDRESS}", param, ctx)
        return text


def _print_json_version(context: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(bmv2_options.JSON_VERSION)
        context.exit()


TARGET_OPTIONS: list[click.Parameter] = [
    click.Option(
        ["--grpc-server-addr"],
        type=AddressType(),
        default=DEFAULT_ADDRESS,
        show_default=True,
        help="HOST:PORT to serve on.",
    ),
    click.Option(["--cpu-port"], type=click.IntRange(0, 511), default=510, show_default=True),
    click.Option(["--drop-port"], type=click.IntRange(0, 511), default=511, show_default=True),
    click.Option(
        ["--priority-queues"],
        type=click.IntRange(1, 8),
        default=8,
        help="Always 8; accepted for BMv2's sake.",
    ),
    *tls_options.PARAMETERS,
    *(option.parameter() for option in bmv2_options.TARGET),
]
"""Options that simple_switch_grpc takes after `--`; here they may also come before it."""


def _target_options(arguments: list[str], known: dict[str, Any]) -> dict[str, Any]:
    """Return the target options after `--`, merged with `known`, which were given before it."""
    command = click.Command("switch --", params=TARGET_OPTIONS, add_help_option=False)
    context = command.make_context("switch --", arguments)
    given = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
    }
    return {**known, **given}


def _split(arguments: tuple[str, ...]) -> tuple[Path | None, list[str]]:
    """Return the program and the arguments after `--`."""
    rest = list(arguments)
    program = Path(rest.pop(0)) if rest and not rest[0].startswith("-") else None
    return program, rest


Thrift = Callable[[int, str, int, bool], contextlib.AbstractContextManager[None]]
"""Serves a Thrift port next to the switch: the port, where the switch serves P4Runtime, its device id, and whether
that takes certificates. Raises OSError if the port is taken."""


@contextlib.contextmanager
def _no_thrift(_port: int, _address: str, _device_id: int, _has_tls: bool) -> Iterator[None]:
    _LOGGER.warning("--thrift-port has no effect: started like this, the switch serves P4Runtime alone")
    yield


class SwitchCommand(PrefixedCommand):
    """A command that distinguishes the program from the optional values of --pcap and --trace.

    Attributes:
        thrift: serves --thrift-port. This package has no clients of P4Runtime, so one above it has to.
        p4info_suffixes: ends of names that the caller has looked for next to the program, in place of `.json`.
    """

    thrift: Thrift = staticmethod(_no_thrift)
    p4info_suffixes: tuple[str, ...] = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default value after these options if no value follows."""
        return super().parse_args(ctx, list(_with_values(args)))


def _with_values(arguments: list[str]) -> Iterator[str]:
    for argument, following in pairwise([*arguments, "-"]):
        if argument == "--trace" and not following.isdecimal():
            yield "--trace=1"
        elif argument == "--pcap" and (following.startswith("-") or following.endswith(".json")):
            yield "--pcap=."
        else:
            yield argument


@click.command(cls=SwitchCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[JSON] [-- TARGET OPTIONS]")
@click.option("-i", "--interface", "interfaces", type=InterfaceType(), multiple=True, help="Attach an interface.")
@click.option("--device-id", type=click.IntRange(0, 2**64 - 1), default=DEFAULT_DEVICE_ID, show_default=True)
@click.option("--no-p4", is_flag=True, help="Start without a program; P4Runtime brings it.")
@click.option("--p4info", type=click.Path(path_type=Path), help="P4Info text of JSON, to serve it at once.")
@click.option(
    "--pcap",
    type=click.Path(path_type=Path),
    metavar="[DIR]",
    help="Capture to DIR/INTERFACE_in.pcap and DIR/INTERFACE_out.pcap (DIR is . if not given).",
)
@click.option("--pcap-without-shims", is_flag=True, help="Leave Weft's shims out of IP frames in captures.")
@click.option(
    "--trace",
    "trace_packets",
    type=click.IntRange(1),
    metavar="[N]",
    help="Print what each of the next N packets (1) meets as a tree.",
)
@click.option("--log-console", is_flag=True, help="Log to stdout, packet by packet.")
@click.option("--log-file", type=click.Path(path_type=Path), help="Log to a file, packet by packet.")
@click.option(
    "-L",
    "--log-level",
    type=click.Choice(list(LEVELS)),
    default="trace",
    show_default=True,
    help="debug follows every packet, trace shows every write as well; from info on the switch runs at full speed.",
)
@click.option("--log-flush", is_flag=True, help="Accepted; the log is always flushed.")
@click.option("--log-file-max-size", type=click.IntRange(1), default=5 * 1024 * 1024, show_default=True)
@click.option("--log-file-max-files", type=click.IntRange(0), default=3, show_default=True)
@click.option("--dump-packet-data", type=click.IntRange(0), default=0, help="Log so many bytes of every packet.")
@click.option("--thrift-port", type=click.IntRange(1, 65535), help="Serve BMv2's Thrift calls on this port, loopback.")
@click.option("--max-port-count", type=click.IntRange(0), default=512, show_default=True, help="Most interfaces.")
@click.option("--rate-bps", type=click.IntRange(0), default=0, help="Rate of every port; 0 is unpaced.")
@click.option("--queue-capacity-bytes", type=click.IntRange(1), default=DEFAULT_QUEUE_CAPACITY_BYTES, show_default=True)
@click.option("--trim-class", type=_CLASS, multiple=True, help="Queue that trims packets instead of dropping them.")
@click.option(
    "--trim-size-bytes", type=click.IntRange(SMALLEST_TRIMMED_BYTES), default=DEFAULT_TRIMMED_BYTES, show_default=True
)
@click.option("--trim-dscp", type=_DSCP, help="DSCP of trimmed packets.")
@click.option("--trim-queue", type=_CLASS, default=CONTROL_CLASS, show_default=True, help="Queue of trimmed packets.")
@click.option("--trim-trimmable-dscp", type=_DSCP, multiple=True, help="DSCP of packets that may be trimmed.")
@click.option(
    "--trim-reserved-bytes",
    type=click.IntRange(0),
    default=DEFAULT_TRIM_RESERVED_BYTES,
    show_default=True,
    help="Memory of each port for the queue of trimmed packets alone.",
)
@click.option("--depth-unit", type=click.Choice(["cells", "packets"]), default="packets", show_default=True)
@click.option("--time-unit", type=click.Choice(["ns", "us"]), default="us", show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.version_option(None, "-v", "--version", package_name="weft", prog_name="weft switch")
@click.option(
    "--json-version", is_flag=True, expose_value=False, is_eager=True, callback=_print_json_version,
    help="Print the newest version of BMv2 JSON that is understood.",
)  # fmt: skip
def switch(arguments: tuple[str, ...], interfaces: tuple[tuple[int, str], ...], **options: Any) -> None:
    """Run one embedded switch until interrupted; takes simple_switch_grpc's options.

    JSON is a BMv2 program. Without --p4info, P4Runtime has no pipeline until a controller sets one.
    """
    program, rest = _split(arguments)
    target = _target_options(rest, {name: options.pop(name) for name in _TARGET_NAMES})
    ignored = bmv2_options.take_out(options, bmv2_options.GENERAL)
    ignored.update(bmv2_options.take_out(target, bmv2_options.TARGET))
    if program is None and not options["no_p4"]:
        raise click.UsageError("a program is missing (or --no-p4)")
    if program is not None and program.suffix == ".p4":
        raise click.UsageError(f"{program} must be compiled first: weft compile {program} -o {program.stem}.json")
    given, program = program, None if options["no_p4"] else program
    if options["p4info"] is not None and program is None:
        raise click.UsageError("--p4info describes a program, which is missing")
    if len(interfaces) > options["max_port_count"]:
        raise click.UsageError(f"{len(interfaces)} interfaces, but --max-port-count {options['max_port_count']}")
    log = _log_options(options)
    run = Options(
        program,
        options["p4info"],
        options["pcap"],
        log,
        options["dump_packet_data"],
        options["trace_packets"] or 0,
        options["pcap_without_shims"],
    )
    if run.captures_without_shims and run.capture_directory is None:
        raise click.UsageError("--pcap-without-shims: there are no captures without --pcap")
    if run.trace_packets and run.logs_packets:
        raise click.UsageError("--trace: the log shows every packet already; leave it out, or use -L info")
    try:
        set_up(log)
        bmv2_options.warn(ignored)
        if given is not None and program is None:
            _LOGGER.warning("%s is not loaded, because of --no-p4", given)
        if program is not None and options["p4info"] is None:
            _log_missing_p4info(program)
        config = _config(interfaces, options, target)
        Foreground(config, run).run(_beside(options["thrift_port"], config))
    except ValidationError as error:
        say_error(description(error))
        sys.exit(EXIT_BAD_INPUT)
    except (ConfigError, StartError, ValueError) as error:
        say_error(str(error))
        sys.exit(EXIT_BAD_INPUT)
    except OSError as error:
        say_error(_refusal(error))
        sys.exit(EXIT_ENVIRONMENT)


def _beside(port: int | None, config: DaemonConfig) -> Beside:
    """Return what runs next to the switch: its Thrift port, if it has one."""
    if port is None:
        return alone
    thrift = _command().thrift
    return lambda address: thrift(port, address, config.switches[0].device_id, config.grpc_tls is not None)


def _command() -> SwitchCommand:
    command = click.get_current_context().command
    assert isinstance(command, SwitchCommand)
    return command


def _log_missing_p4info(program: Path) -> None:
    names = " or ".join(program.stem + suffix for suffix in _command().p4info_suffixes)
    searched = f" (not found next to it, or older: {names})" if names else ""
    _LOGGER.info(
        "%s has no P4Info%s: P4Runtime has no pipeline until a controller sets one, or with --p4info FILE",
        program,
        searched,
    )


def _log_options(options: dict[str, Any]) -> LogOptions:
    return LogOptions(
        console=options["log_console"],
        file=options["log_file"],
        level=LEVELS[options["log_level"]],
        max_file_bytes=options["log_file_max_size"],
        max_files=options["log_file_max_files"],
    )


def _refusal(error: OSError) -> str:
    """Return the operating system's reason, without the error's number."""
    if error.strerror is None:
        return str(error)
    place = f"{error.filename}: " if error.filename else ""
    needed = " (run it as root, or with sudo)" if isinstance(error, PermissionError) else ""
    return f"{place}{error.strerror}{needed}"


@dataclass(frozen=True, slots=True)
class Given:
    """A switch's program on a command line, and whether P4Info goes with it."""

    program: Path | None
    has_p4info: bool


def given(arguments: list[str]) -> Given:
    """Return what a command line says, without running the switch. Raises click.UsageError."""
    with switch.make_context("simple_switch_grpc", list(arguments)) as context:
        program, _ = _split(context.params["arguments"])
        return Given(None if context.params["no_p4"] else program, context.params["p4info"] is not None)


_TARGET_NAMES = [str(parameter.name) for parameter in TARGET_OPTIONS]
switch.params.extend([*(option.parameter() for option in bmv2_options.GENERAL), *TARGET_OPTIONS])


def _trimming(options: dict[str, Any]) -> TrimmingConfig | None:
    if not options["trim_class"]:
        if options["trim_dscp"] is not None or options["trim_trimmable_dscp"]:
            raise click.UsageError("--trim-class is missing: which queues are to trim?")
        return None
    if options["trim_dscp"] is None or not options["trim_trimmable_dscp"]:
        raise click.UsageError("--trim-class needs --trim-dscp and --trim-trimmable-dscp")
    return TrimmingConfig(
        classes=options["trim_class"],
        size_bytes=options["trim_size_bytes"],
        dscp=options["trim_dscp"],
        queue=options["trim_queue"],
        trimmable_dscps=options["trim_trimmable_dscp"],
        reserved_bytes=options["trim_reserved_bytes"],
    )


def _config(interfaces: tuple[tuple[int, str], ...], options: dict[str, Any], target: dict[str, Any]) -> DaemonConfig:
    trimming = _trimming(options)
    ports = tuple(
        PortConfig(
            port=number,
            interface=interface,
            rate_bps=options["rate_bps"],
            queue_capacity_bytes=options["queue_capacity_bytes"],
            trimming=trimming,
        )
        for number, interface in interfaces
    )
    only = SwitchConfig(
        device_id=options["device_id"],
        name=f"switch-{options['device_id']}",
        cpu_port=target["cpu_port"],
        drop_port=target["drop_port"],
        depth_unit=options["depth_unit"],
        time_unit=options["time_unit"],
        ports=ports,
    )
    return DaemonConfig(
        seed=options["seed"],
        grpc_address=target["grpc_server_addr"],
        grpc_tls=tls_options.server_tls(target),
        switches=(only,),
    )
