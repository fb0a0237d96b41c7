"""One process with all embedded switches of a lab: `python -m weft.switch.daemon --config FILE`.

Prints one JSON line when it serves P4Runtime, then answers commands on stdin, one JSON object per line. It
exits when stdin ends, on SIGTERM or SIGINT, and when its parent dies.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import IO, Any

import click

from weft.switch.daemon.config import ConfigError, read_config
from weft.switch.daemon.daemon import Daemon
from weft.switch.daemon.process import EXIT_BAD_INPUT, EXIT_ENVIRONMENT, die_with_parent, on_termination
from weft.switch.p4runtime.tls import TlsError


def _say(stream: IO[str], message: dict[str, Any]) -> None:
    stream.write(json.dumps(message) + "\n")
    stream.flush()


def _leave() -> None:
    # ends the read of stdin, so that the main thread closes everything
    raise SystemExit(0)


@click.command()
@click.option("--config", "path", type=click.Path(path_type=Path), required=True, help="JSON configuration.")
def main(path: Path) -> None:
    """Run the embedded switches of a lab."""
    die_with_parent()
    with on_termination(_leave):
        _run(path)


def _run(path: Path) -> None:
    try:
        daemon = Daemon(read_config(path))
    except (ConfigError, TlsError) as error:
        _say(sys.stdout, {"error": str(error)})
        sys.exit(EXIT_BAD_INPUT)
    except OSError as error:
        _say(sys.stdout, {"error": str(error)})
        sys.exit(EXIT_ENVIRONMENT)
    try:
        daemon.serve()
        _say(sys.stdout, {"ready": True, "grpc_address": daemon.server.address})
        for line in sys.stdin:
            if line.strip():
                _say(sys.stdout, daemon.answer(line))
    except BrokenPipeError:
        pass  # nobody reads the answers any more
    finally:
        daemon.close()


if __name__ == "__main__":
    main()
