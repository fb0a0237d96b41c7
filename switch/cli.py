"""`weft switch`: one embedded switch in the foreground, with simple_switch_grpc's options."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import click

from switch.daemon_config import (
    DEFAULT_QUEUE_CAPACITY_BYTES,
    ConfigError,
    DaemonConfig,
    PortConfig,
    SwitchConfig,
)
from switch.foreground import Foreground, Options, StartError
from switch.p4runtime.service import DEFAULT_ADDRESS
from switch.process import EXIT_BAD_INPUT, EXIT_ENVIRONMENT

DEFAULT_DEVICE_ID = 1
LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}


class InterfaceType(click.ParamType[tuple[int, str]]):
    """PORT@INTERFACE."""

    name = "PORT@INTERFACE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, str]:
        """Split the port number from the interface."""
        number, separator, interface = str(value).partition("@")
        if not separator or not number.isdecimal() or not interface:
            self.fail(f"{value!r} is not PORT@INTERFACE, such as 1@veth0", param, ctx)
        return int(number), interface


TARGET_OPTIONS: list[click.Parameter] = [
    click.Option(
        ["--grpc-server-addr"], default=DEFAULT_ADDRESS, show_default=True, help="HOST:PORT to serve on."
    ),
    click.Option(["--cpu-port"], type=click.IntRange(0, 511), default=510, show_default=True),
    click.Option(["--drop-port"], type=click.IntRange(0, 511), default=511, show_default=True),
    click.Option(
        ["--priority-queues"],
        type=click.IntRange(1, 8),
        default=8,
        help="Always 8; accepted for BMv2's sake.",
    ),
]
"""simple_switch_grpc takes these behind `--`; here they may also stand before it."""


def _target_options(arguments: list[str], known: dict[str, Any]) -> dict[str, Any]:
    """The target options behind `--`; `known` are those that were given before it."""
    command = click.Command("switch --", params=TARGET_OPTIONS, add_help_option=False)
    context = command.make_context("switch --", arguments)
    given = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
    }
    return {**known, **given}


def _split(arguments: tuple[str, ...]) -> tuple[Path | None, list[str]]:
    """The program and what stood behind `--`."""
    rest = list(arguments)
    program = Path(rest.pop(0)) if rest and not rest[0].startswith("-") else None
    return program, rest


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[JSON] [-- TARGET OPTIONS]")
@click.option(
    "-i", "--interface", "interfaces", type=InterfaceType(), multiple=True, help="Attach an interface."
)
@click.option("--device-id", type=click.IntRange(1), default=DEFAULT_DEVICE_ID, show_default=True)
@click.option("--no-p4", is_flag=True, help="Start without a program; P4Runtime brings it.")
@click.option("--p4info", type=click.Path(path_type=Path), help="P4Info text of JSON, to serve it at once.")
@click.option(
    "--pcap",
    type=click.Path(path_type=Path),
    is_flag=False,
    flag_value=".",
    help="Capture each interface to DIR.",
)
@click.option("--log-console", is_flag=True, help="Log to stderr, the program's log_msg included.")
@click.option("--log-file", type=click.Path(path_type=Path), help="Log to a file.")
@click.option("-L", "--log-level", type=click.Choice(list(LEVELS)), default="info", show_default=True)
@click.option("--rate-bps", type=click.IntRange(0), default=0, help="Rate of every port; 0 is unpaced.")
@click.option(
    "--queue-capacity-bytes", type=click.IntRange(1), default=DEFAULT_QUEUE_CAPACITY_BYTES, show_default=True
)
@click.option("--depth-unit", type=click.Choice(["cells", "packets"]), default="cells", show_default=True)
@click.option("--time-unit", type=click.Choice(["ns", "us"]), default="ns", show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--thrift-port", type=int, help="Refused with a warning: there is no Thrift server.")
def switch(arguments: tuple[str, ...], interfaces: tuple[tuple[int, str], ...], **options: Any) -> None:
    """Run one embedded switch until interrupted; accepts simple_switch_grpc's options.

    JSON is a BMv2 program. Without --p4info, P4Runtime has no pipeline until a controller sets one.
    """
    program, rest = _split(arguments)
    target = _target_options(rest, {name: options.pop(name) for name in _TARGET_NAMES})
    if options["no_p4"] and program is not None:
        raise click.UsageError("give either a program or --no-p4")
    if program is None and not options["no_p4"]:
        raise click.UsageError("a program is missing (or --no-p4)")
    if options["p4info"] is not None and program is None:
        raise click.UsageError("--p4info describes a program, which is missing")
    _set_up_logging(options["log_console"], options["log_file"], LEVELS[options["log_level"]])
    if options["thrift_port"] is not None:
        logging.getLogger(__name__).warning(
            "--thrift-port %d: there is no Thrift server", options["thrift_port"]
        )
    try:
        config = _config(interfaces, options, target)
        runner = Foreground(
            config, Options(program, options["p4info"], options["pcap"], options["log_console"])
        )
    except (ConfigError, StartError, ValueError) as error:
        click.echo(f"weft switch: {error}", err=True)
        sys.exit(EXIT_BAD_INPUT)
    except OSError as error:
        click.echo(f"weft switch: {error}", err=True)
        sys.exit(EXIT_ENVIRONMENT)
    runner.run()


_TARGET_NAMES = [str(parameter.name) for parameter in TARGET_OPTIONS]
switch.params.extend(TARGET_OPTIONS)


def _config(
    interfaces: tuple[tuple[int, str], ...], options: dict[str, Any], target: dict[str, Any]
) -> DaemonConfig:
    ports = tuple(
        PortConfig(
            port=number,
            interface=interface,
            rate_bps=options["rate_bps"],
            queue_capacity_bytes=options["queue_capacity_bytes"],
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
    return DaemonConfig(seed=options["seed"], grpc_address=target["grpc_server_addr"], switches=(only,))


def _set_up_logging(console: bool, file: Path | None, level: int) -> None:
    handlers: list[logging.Handler] = [logging.StreamHandler()] if console or file is None else []
    if file is not None:
        handlers.append(logging.FileHandler(file, encoding="utf-8"))
    logging.basicConfig(
        level=level, handlers=handlers, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
