"""Paths of Weft's own files: next to the package in a checkout, inside the package when installed.

setup.py copies the folders of `SHIPPED` into wheels, as weft/shipped/.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent
SHIPPED = ("p4", "labs", "examples", "docs")


def is_installed() -> bool:
    """Return whether Weft is installed in the interpreter's packages, where every child finds it, not a checkout."""
    return str(ROOT) in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))


def _folder(name: str) -> Path:
    shipped = PACKAGE / "shipped" / name
    return shipped if shipped.is_dir() else ROOT / name


P4_DIRECTORY = _folder("p4")
P4_MODULES = P4_DIRECTORY / "include"
"""Folder of the files that programs include as <weft/headers.p4> and so on."""
FABRIC_P4 = P4_DIRECTORY / "fabric.p4"
LABS_DIRECTORY = _folder("labs")
EXAMPLES_DIRECTORY = _folder("examples")
DOCS_DIRECTORY = _folder("docs")
SHELL_PYTHON = ROOT / ".venv-shell" / "bin" / "python"
