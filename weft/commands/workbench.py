"""`weft workbench`: scenarios of a folder in the browser."""

from __future__ import annotations

from pathlib import Path

import click

from weft.workbench import DEFAULT_PORT


@click.command()
@click.argument("directory", metavar="[DIR]", type=click.Path(file_okay=False, path_type=Path), default=".")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port of 127.0.0.1; 0 means any free one.",
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def workbench(directory: Path, port: int, no_browser: bool) -> None:
    """Write, run and compare the scenarios of DIR (this folder) in a browser, until Ctrl-C.

    The page is served on this machine's loopback, and asks for the token in the address that is printed. Scenarios are
    the .yaml files in DIR, runs are in DIR/runs: other commands take both.
    """
    import os
    import signal
    import webbrowser

    from weft.system.signals import signals_unwind
    from weft.workbench.server import WorkbenchServer

    with signals_unwind(), WorkbenchServer(directory, port) as server:
        click.echo(f"workbench at {server.url}")
        click.echo("Ctrl-C ends it and its runs", err=True)
        # Elsewhere Python would open a browser in the terminal.
        if not no_browser and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            webbrowser.open(server.way_in().as_uri())
        try:
            while True:
                signal.pause()
        except KeyboardInterrupt:
            click.echo("", err=True)
