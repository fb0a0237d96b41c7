"""Put the pieces of a file into the gaps of Weft's aggregation program.

python labs/23-in-network-computing/build.py GAPS.p4 FOLDER        writes FOLDER/fabric.p4 and what it includes
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from pathlib import Path

from weft.errors import BadInputError, WeftError
from weft.paths import FABRIC_P4, P4_DIRECTORY

# Where each piece stands in aggregation.p4: what comes before it, the piece, what comes after it.
GAPS = {
    "first": r"(state == SLOT_COLLECTING && )([^\n]*)(\)\) \{\n)",
    "collect": r"(brings_lanes == 1\) \{\n +keep = 0xFFFFFFFF;\n +\}\n)(.*?)( +outcome = Outcome.ABSORB;\n)",
    "complete": r"(outcome = Outcome.ABSORB;\n)(.*?)( +\} else if \(!same_round\) \{\n)",
    "again": r"(AGGREGATION_DUPLICATE;\n +\} else \{\n)(.*?)( +\}\n\n +if \(outcome != Outcome.DROP\))",
}
_MARK = re.compile(r"^// GAP (\w+)\n", re.MULTILINE)
_INDENT = 16 * " "
_MOST_CHARACTERS = 64 * 1024


def pieces_of(path: Path) -> dict[str, str]:
    """Return the pieces of a file by the name of their gap; BadInputError if they are not one for each."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MOST_CHARACTERS)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path}: this file of gaps cannot be read: {error}") from error
    _, *parts = _MARK.split(text)
    names = parts[::2]
    if sorted(names) != sorted(GAPS):
        found = ", ".join(names) or "none"
        raise BadInputError(f"{path}: its gaps are {found} (needed, each once: {', '.join(GAPS)})")
    return {name: body.strip("\n") for name, body in zip(names, parts[1::2], strict=True)}


def filled(program: str, pieces: dict[str, str]) -> str:
    """Return the text of aggregation.p4 with these pieces in its gaps."""
    for name, piece in pieces.items():
        statements = name != "first"
        text = textwrap.indent(piece, _INDENT) if statements else piece
        if statements or "//" in piece:  # a comment ends with its line
            text += "\n"
        program, count = re.subn(
            GAPS[name],
            lambda found, text=text: found[1] + text + found[3],
            program,
            flags=re.DOTALL if statements else 0,
        )
        if count != 1:
            raise BadInputError(f"gap '{name}' stands {count} times in this Weft's aggregation.p4, not once")
    return program


def build(gaps: Path, folder: Path) -> Path:
    """Write the program with a file's pieces to a folder, over an earlier one; return its main file."""
    pieces = pieces_of(gaps)
    for source in P4_DIRECTORY.rglob("*.p4"):
        relative = source.relative_to(P4_DIRECTORY)
        target = folder / relative
        for path in (target, *target.parents[: len(relative.parts)]):
            if path.is_symlink():
                raise BadInputError(f"{path} is a symbolic link, through which nothing is written")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.name == "aggregation.p4":
            target.write_text(filled(source.read_text(encoding="utf-8"), pieces), encoding="utf-8")
        else:
            shutil.copyfile(source, target)
    return folder / FABRIC_P4.name


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        print(f"wrote {build(Path(sys.argv[1]), Path(sys.argv[2]))}")
    except WeftError as error:
        print(f"build: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
