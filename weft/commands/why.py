"""`weft why`: what limited a run."""

from __future__ import annotations

from pathlib import Path

import click

from weft.errors import BadInputError

_UNKNOWN = "unknown: no port was busy for half of the time, and nothing else that was recorded explains a tenth of it"
_INVALID = "unknown: an item of the traffic failed, no traffic ran, or late events made the times invalid"


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
def why(directory: Path) -> None:
    """Say what limited the run that has left its results in DIRECTORY, and how much of its time that explains.

    The first line names the first thing to look at: a link, a host, a receiver, a window, pauses, losses, computation.
    """
    from weft.report.run_directory import RunDirectory
    from weft.report.sweep_page import is_sweep
    from weft.results.printing import print_limits
    from weft.system.consoles import make_console

    if is_sweep(directory):
        raise BadInputError("is a sweep's: name the directory of one of its points", place=directory)
    run = RunDirectory.read(directory)
    print_limits(make_console(), run.limits)
    if not run.limits:
        click.echo(_UNKNOWN if run.evidence.is_valid else _INVALID)
