"""Makes the helpers of this folder and of the switch's tests importable (pytest runs in importlib mode)."""

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path += [str(FOLDER), str(FOLDER.parent / "switch")]
