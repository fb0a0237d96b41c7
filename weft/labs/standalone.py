"""Adapts a lab's page to a copy of the lab outside a checkout: commands, the files they name, links."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from weft.labs.notebook import POINTER, on_path, relinked
from weft.paths import EXAMPLES_DIRECTORY, LABS_DIRECTORY

DOCS = "docs"
"""Name of the symbolic link, in a copy's folder, to the documentation of the Weft that made the copy."""
_CODE = re.compile(r"```.*?```|`[^`]+`", re.DOTALL)
_AS_ROOT = re.compile(r"\bsudo \.venv/bin/(weft|python)\b")
_FILE = re.compile(r"(?<![\w./-])(labs|examples)(?:/[\w.-]+)+")
_SHIPPED = {"labs": LABS_DIRECTORY, "examples": EXAMPLES_DIRECTORY}


def standalone_page(page: str, lab: str, is_there: Callable[[str], bool]) -> str:
    """Return a lab's page for a folder with its files; `is_there` says whether the folder has a file, by name.

    Commands run there with the Weft on the PATH. Links to missing files become text.
    """

    def target_of(path: str, fragment: str) -> str | None:
        inside = path.removeprefix(f"labs/{lab}/")
        return inside + fragment if inside.startswith(f"{DOCS}/") or is_there(inside) else None

    at, parts = 0, []
    for code in _CODE.finditer(page):
        parts += [page[at : code.start()], _commands(code[0], lab)]
        at = code.end()
    lines = "".join([*parts, page[at:]]).splitlines()
    linked = [(line, relinked(line, lab, target_of)) for line in lines]
    leading = [new for old, new in linked if new == old or not POINTER.fullmatch(old) or POINTER.fullmatch(new)]
    return "\n".join(leading).rstrip() + "\n"


def _commands(code: str, lab: str) -> str:
    # sudo uses a different PATH.
    code = on_path(_AS_ROOT.sub(r'sudo "$(command -v \1)"', code))
    return _FILE.sub(lambda found: _file(found, lab), code)


def _file(found: re.Match[str], lab: str) -> str:
    own = f"labs/{lab}"
    if f"{found[0]}/".startswith(f"{own}/"):
        return found[0].removeprefix(own).lstrip("/") or "."
    shipped = _SHIPPED[found[1]] / Path(found[0]).relative_to(found[1])
    return str(shipped) if shipped.exists() else found[0]
