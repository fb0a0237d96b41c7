"""`python -m weft.sweeps.point DIRECTORY`: `weft run` on a sweep's point; it ends when its parent process does."""

from __future__ import annotations

import sys
from pathlib import Path

from weft.cli import main
from weft.sweeps.store import SCENARIO
from weft.switch.daemon.process import die_with_parent


def run_here() -> None:
    """Run the point in the directory given as first argument, and exit as `weft run` does."""
    die_with_parent()
    directory = Path(sys.argv[1])
    sys.argv[1:] = ["run", str(directory / SCENARIO), "--clock", "virtual", "--out", str(directory)]
    main()


if __name__ == "__main__":
    run_here()
