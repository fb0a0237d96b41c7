"""Lists the places in weft/compiler/ that report an error or warning which no program in broken/ causes.

python tests/compiler/uncovered_messages.py
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from weft.compiler import CompileError, compile_file  # noqa: E402
from weft.compiler.diagnostics import Diagnostics  # noqa: E402
from weft.compiler.warnings.reporter import WarningReporter  # noqa: E402

ELSEWHERE = (
    "the program nests too deep",  # a guard: budgets refuse such programs before
    "internal compiler error",  # a guard against faults of the compiler itself
    "cannot read {error}",  # tests/diagnostics/test_compile_command.py: a device, a file that is too large
    "cannot read '{path}': {error}",  # an OSError: a file that vanishes, or may not be read
    "cannot define '{name}'",  # test_preprocess.py: a name given on the command line
)
"""Starts of messages that no text of a program causes."""
REPORTING = frozenset(["error", "fail", "refuse", "warning", "warn", "_mismatch", "unexpected"])


def sites() -> dict[tuple[str, int, int], str]:
    """(file, first line, last line) of each call that reports something, with its text."""
    found = {}
    for path in sorted((ROOT / "weft" / "compiler").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
                written = ast.get_source_segment(text, node) or ""
                if name in REPORTING and node.args and not any(each in written for each in ELSEWHERE):
                    key = str(path), node.lineno, node.end_lineno or node.lineno
                    found[key] = " ".join(written.split())
    return found


def reporting_lines() -> set[tuple[str, int]]:
    """(file, line) of all calls on the stack whenever something is reported about a program."""
    lines = set()
    original = Diagnostics._add

    def record() -> None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            lines.add((frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back

    def recorded(self: Diagnostics, *arguments: object, **options: object) -> object:
        record()
        return original(self, *arguments, **options)  # type: ignore[arg-type]

    Diagnostics._add = recorded  # type: ignore[assignment,method-assign]
    warn = WarningReporter.warn

    def warned(self: WarningReporter, *arguments: object, **options: object) -> object:
        record()
        return warn(self, *arguments, **options)  # type: ignore[arg-type]

    WarningReporter.warn = warned  # type: ignore[assignment,method-assign]
    for program in sorted((Path(__file__).parent / "broken").rglob("*.p4")):
        try:
            compile_file(program)
        except CompileError:
            continue
    return lines


def main() -> int:
    """Print what is left; returns 1 if there is anything."""
    every, lines = sites(), reporting_lines()
    left = {
        key: text
        for key, text in every.items()
        if not any(file == key[0] and key[1] <= line <= key[2] for file, line in lines)
    }
    for (file, line, _), text in left.items():
        print(f"{Path(file).relative_to(ROOT)}:{line}: {text[:150]}")
    print(f"{len(every) - len(left)} of {len(every)} places are covered")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
