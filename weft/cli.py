"""The `weft` command: a thin layer over the Python API.

Exit codes: 0 ok, 1 a check failed, 2 usage, 3 bad input, 4 the environment lacks something.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from weft.cache.collector import collector_paused
from weft.command_errors import say_error, show
from weft.errors import BadInputError, EnvironmentLacksError, WeftError
from weft.hints import DISTRIBUTION, did_you_mean
from weft.quantities.units import parse_size_range_bytes
from weft.system.mpirun import process_count
from weft.system.shipped_labs import LAB_PREFIX, lab_file, names_of_labs, names_of_scenarios
from weft.system.streams import printable, usable_streams

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_LAYOUT = "\n\t"
_YOUNG_OBJECTS = 200_000
"""Containers that a command creates between two searches for garbage; Python's default is 700."""


class Entry(NamedTuple):
    """A command: its module and attribute, imported only on use, and what the list of commands says of it."""

    module: str
    attribute: str
    summary: str


SECTIONS = {
    "Run": {
        "run": Entry("weft.commands.run", "run", "Run a scenario and check its results"),
        "lint": Entry("weft.commands.lint", "lint", "Find settings of scenarios that cannot work together"),
        "sweep": Entry("weft.commands.sweep", "sweep", "Run a scenario with every combination of values"),
        "bench": Entry("weft.commands.bench", "bench", "Benchmark a fabric as the IETF's drafts define it"),
        "drill": Entry("weft.commands.drill", "drill", "Run a scenario with faults drawn at random, and judge it"),
        "paper": Entry("weft.commands.paper", "paper", "Repeat what a paper measured, next to its published values"),
        "workbench": Entry("weft.commands.workbench", "workbench", "Write, run and compare scenarios in a browser"),
        "collective": Entry("weft.commands.collective", "collective", "Time a collective over a range of sizes"),
        "lab": Entry("weft.commands.lab", "lab", "Keep a scenario's fabric up for other terminals"),
        "exec": Entry("weft.commands.exec", "exec_command", "Run a command in a host of the running lab"),
        "clean": Entry("weft.commands.clean", "clean", "Remove what interrupted runs left behind"),
        "doctor": Entry("weft.commands.doctor", "doctor", "Show what this machine can do, and what to install"),
    },
    "Look": {
        "report": Entry("weft.commands.report", "report", "Make an HTML page of a run or a sweep"),
        "why": Entry("weft.commands.why", "why", "Say what limited a run"),
        "compare": Entry("weft.commands.compare", "compare", "Compare the results of several runs"),
        "trace": Entry("weft.commands.trace", "trace", "Show what a packet meets on its way"),
        "diff": Entry("weft.commands.diff", "diff", "Show what changed in switches between two moments"),
        "controller": Entry("weft.controller.cli", "controller", "Read and change the switches of the running lab"),
        "shell": Entry("weft.commands.shell", "shell", "Open p4runtime-shell on a switch"),
        "switch-cli": Entry("weft.commands.switch_cli", "switch_cli", "Run simple_switch_CLI's commands on a switch"),
    },
    "Design": {
        "topology": Entry("weft.commands.topology", "topology", "Show, draw or export a scenario's fabric"),
        "job": Entry("weft.commands.job", "job", "Show a scenario's training jobs"),
        "job-trace": Entry("weft.commands.job_trace", "job_trace", "Show and convert traces of jobs"),
        "calibrate": Entry("weft.commands.calibrate", "calibrate", "Fit a scenario's costs to logs of nccl-tests"),
        "cost": Entry("weft.commands.cost", "cost", "Print prices and power of fabrics"),
        "power": Entry("weft.commands.power", "power", "Show racks' power over the time of a run's job"),
        "goodput": Entry("weft.commands.goodput", "goodput", "Show what failures leave of a cluster's time"),
        "schedule": Entry("weft.commands.schedule", "schedule", "Place jobs on a cluster by several policies"),
        "switch-cost": Entry(
            "weft.commands.switch_cost", "switch_cost", "Print what in-network reduction takes of a switch"
        ),
    },
    "Program": {
        "new": Entry("weft.commands.new", "new", "Make a folder with a P4 program of your own"),
        "compile": Entry("weft.compiler.cli", "compile_command", "Compile a P4_16 program to BMv2 JSON and P4Info"),
        "stf": Entry("weft.commands.stf", "stf", "Run STF test cases on a P4 program"),
        "switch": Entry("weft.thrift.commands", "switch", "Run one switch on interfaces of this machine"),
        "shims": Entry("weft.commands.shims", "shims", "Write launchers by the names of p4lang's tools"),
    },
    "Learn": {
        "labs": Entry("weft.commands.labs", "labs", "List the labs, or copy one"),
        "check": Entry("weft.commands.check", "check", "Check a lab's solution"),
        "init": Entry("weft.commands.init", "init", "Write a small commented scenario"),
        "presets": Entry("weft.commands.presets", "presets", "List presets of fabrics, or show one with its sources"),
        "schema": Entry("weft.commands.schema", "schema", "Print the JSON Schema of scenarios and results"),
        "completion": Entry("weft.commands.completion", "completion", "Complete commands and labs in your shell"),
    },
}
"""All commands, by section and name."""
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}
_EXAMPLES = """\b
Examples:
  weft run lab:01-allreduce              run a scenario that ships with Weft
  weft report runs/RUN                   make a page of what a run left
  weft new counter                       begin a P4 program of your own"""

COMPLETE_VARIABLE = "_WEFT_COMPLETE"
"""Environment variable with which a shell's script asks for completions."""
_RUNS_ALONE = ("sweep", "paper", "lab", "collective", "trace", "exec")
"""Commands that run a fabric in one process."""


class LazyGroup(click.Group):
    """A group that imports a command only when it is used.

    `has_process`: whether the process belongs to the command alone, so that imported modules stay until its end.
    """

    has_process = False

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by name; None if it is unknown."""
        if cmd_name not in COMMANDS:
            return None
        entry = COMMANDS[cmd_name]
        with collector_paused():
            command: click.Command = getattr(importlib.import_module(entry.module), entry.attribute)
        if self.has_process:
            gc.freeze()
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Return commands and options that begin so, without importing a command."""
        from click.shell_completion import CompletionItem

        commands = [
            CompletionItem(name, help=entry.summary) for name, entry in COMMANDS.items() if name.startswith(incomplete)
        ]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section, without importing them."""
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.summary) for name, entry in entries.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve like click, but suggest the nearest command for an unknown one."""
        if args and args[0] not in COMMANDS:
            ctx.fail(f"unknown command '{args[0]}'; {did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    epilog=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name=DISTRIBUTION)
@click.pass_context
def weft(ctx: click.Context) -> None:
    """Emulate AI training fabrics, packet by packet, with P4 switches that you can program."""
    if ctx.invoked_subcommand in _RUNS_ALONE and process_count() > 1:
        raise BadInputError(
            f"weft {ctx.invoked_subcommand}: mpirun started {process_count()} processes, and each would do the same "
            "(valid under mpirun: weft run)"
        )


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit with the codes above; expected errors are reported without a traceback.

    `arguments` default to the process's arguments.
    """
    weft.has_process = arguments is None
    if weft.has_process:
        usable_streams()
        # Most objects of a run live to its end, and looking for garbage among them takes a twentieth of a small run.
        gc.set_threshold(_YOUNG_OBJECTS)
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # keeps gRPC from printing its own lines
    if COMPLETE_VARIABLE in os.environ:
        from weft.system.completion import register

        register()
    code = run_guarded(
        lambda: weft.main(args=arguments, prog_name="weft", complete_var=COMPLETE_VARIABLE, standalone_mode=False)
    )
    if weft.has_process:
        # At its end the interpreter would search all objects for garbage several times, only to free memory that the
        # process gives back anyway: a fifth of the processor time of a run of 128 hosts.
        gc.freeze()
    sys.exit(code)


def run_guarded(command: Callable[[], Any]) -> int:
    """Run a click command outside its standalone mode and return the exit code."""
    try:
        result = command()
        sys.stdout.flush()  # detect a full disk here, not when the interpreter ends
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.Abort:
        say_error("interrupted")
        return 130
    except click.ClickException as error:
        show(error)
        return error.exit_code
    except WeftError as error:
        # The message may quote an untrusted file.
        say_error(printable(str(error), kept=_LAYOUT))
        return error.exit_code
    except (OSError, MemoryError) as error:
        # A full disk or an unwritable directory is a problem of the machine, not a bug.
        say_error(_refusal(error))
        _drop_output()
        return EnvironmentLacksError.exit_code


def _refusal(error: OSError | MemoryError) -> str:
    """Return a message for the machine's error, beginning with the file if there is one."""
    if isinstance(error, MemoryError):
        return f"there is not enough memory: {error}" if str(error) else "there is not enough memory"
    if error.filename is None or not error.strerror:
        return error.strerror or str(error)
    return f"{error.filename}: {error.strerror}"


def _drop_output() -> None:
    """Discard unwritten output, so that the interpreter does not try to write it again at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class _ScenarioFile(click.Path):
    """An existing file, or `lab:NAME` or `lab:NAME/FILE` for a lab that ships with Weft."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and value.startswith(LAB_PREFIX):
            try:
                return lab_file(value.removeprefix(LAB_PREFIX))
            except BadInputError as error:
                self.fail(str(error), param, ctx)
        return super().convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        """Return labs for a word that begins with `lab:`, or that begins `lab:` and no file here; else files."""
        from click.shell_completion import CompletionItem

        may_be_lab = incomplete != "" and LAB_PREFIX.startswith(incomplete) and not any(Path().glob(f"{incomplete}*"))
        if may_be_lab or incomplete.startswith(LAB_PREFIX):
            return [CompletionItem(name) for name in names_of_scenarios(incomplete)]
        return super().shell_complete(ctx, param, incomplete)


def complete_lab(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of labs that begin so, for click's `shell_complete`."""
    return names_of_labs(incomplete)


SCENARIO_FILE = _ScenarioFile()


class _Sizes(click.ParamType[list[int]]):
    name = "sizes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        if isinstance(value, list):
            return value
        try:
            return parse_size_range_bytes(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


SIZES = _Sizes()
