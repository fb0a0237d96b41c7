"""Run rdma-core's Python tests and print a line of JSON for each: `rdma_core_runner.py FOLDER NAME...`.

The distribution's Python runs it, with its pyverbs, so it imports nothing of Weft. FOLDER holds rdma-core's `tests`
package, without the sources of pyverbs, which Python would take for the package. NAMES are modules of the package.
"""

from __future__ import annotations

import json
import signal
import sys
import unittest
from types import FrameType

SECONDS = 120
"""That a test may take."""


class _TooLongError(Exception):
    pass


class _Lines(unittest.TestResult):
    def _print(self, test: unittest.TestCase, outcome: str, detail: str = "") -> None:
        signal.alarm(0)
        print(json.dumps({"test": test.id(), "outcome": outcome, "detail": detail}), flush=True)

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        signal.alarm(SECONDS)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._print(test, "passed")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._print(test, "skipped", reason)

    def addFailure(self, test: unittest.TestCase, err: object) -> None:
        self._print(test, "failed", self._exc_info_to_string(err, test))

    addError = addFailure


def _stop(number: int, frame: FrameType | None) -> None:
    raise _TooLongError(f"no end after {SECONDS} s")


def main(folder: str, *names: str) -> None:
    """Run them."""
    signal.signal(signal.SIGALRM, _stop)
    sys.path[:0] = [folder, f"{folder}/tests"]
    sys.argv = ["run_tests.py", "--dev", "weft0", "--port", "1", "--gid", "0"]
    from args_parser import parser

    parser.parse_args()
    loader = unittest.TestLoader()
    for name in names:
        loader.loadTestsFromName(f"tests.{name}").run(_Lines())


if __name__ == "__main__":
    main(*sys.argv[1:])
