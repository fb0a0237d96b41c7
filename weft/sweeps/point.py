"""`python -m weft.sweeps.point DIRECTORY [ARGUMENTS]`: `weft run` on a sweep's point; it ends when its parent does."""

from __future__ import annotations

import sys
from pathlib import Path

from weft.cli import main
from weft.sweeps.store import SCENARIO
from weft.switch.daemon.process import die_with_parent


def run_here() -> None:
    """Run the point in the directory given as first argument, and exit as `weft run` does.

    Further arguments are those of `weft run`; without them, the directory has the point's scenario.
    """
    die_with_parent()
    directory, *arguments = sys.argv[1:]
    arguments = arguments or [str(Path(directory) / SCENARIO), "--clock", "virtual"]
    sys.argv[1:] = ["run", *arguments, "--out", directory]
    main()


if __name__ == "__main__":
    run_here()
