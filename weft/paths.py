"""Where Weft's own files lie."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
P4_DIRECTORY = ROOT / "p4"
FABRIC_P4 = P4_DIRECTORY / "fabric.p4"
SHELL_PYTHON = ROOT / ".venv-shell" / "bin" / "python"
LABS_DIRECTORY = ROOT / "labs"
