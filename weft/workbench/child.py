"""Runs a `weft` command as a process of the workbench: it is interrupted when its standard input ends.

So it ends with the workbench, however that ends, and takes down what it has built, as after Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
import threading


def _interrupt_at_end_of_input() -> None:
    while os.read(0, 64):
        """Nothing is ever written: the read waits for the end."""
    os.kill(os.getpid(), signal.SIGINT)


def main() -> None:
    """Run the command that the arguments are."""
    # Python ignores SIGINT in programs that a shell has started in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_interrupt_at_end_of_input, daemon=True).start()
    from weft.cli import main as weft

    sys.argv[0] = "weft"
    weft()


if __name__ == "__main__":
    main()
