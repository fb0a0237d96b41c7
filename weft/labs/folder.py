"""A working folder: notebooks of labs, together with the files that their commands and links name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from weft.labs.notebook import COPIED, notebook_of
from weft.labs.page import read_lab_page
from weft.labs.standalone import DOCS, standalone_page
from weft.paths import DOCS_DIRECTORY, EXAMPLES_DIRECTORY, LABS_DIRECTORY
from weft.system.shipped_labs import CHECK_FILE, LAB_MARK, ShippedLab

_SOURCES = {"labs": LABS_DIRECTORY, "docs": DOCS_DIRECTORY, "examples": EXAMPLES_DIRECTORY}
SOLUTIONS = ("solution*",)
"""Patterns of files in a lab's folder that contain answers."""

_NOT_COPIED = ("__pycache__", "runs", CHECK_FILE)


def copy_lab(lab: ShippedLab, folder: Path, answers: bool = True) -> None:
    """Copy a lab's folder to `folder`, which must not exist, with or without its answers.

    The copy names its lab, for `weft check`, and omits the check itself.
    """
    left_out = _NOT_COPIED if answers else (*_NOT_COPIED, *SOLUTIONS)
    shutil.copytree(lab.folder, folder, ignore=shutil.ignore_patterns(*left_out))
    (folder / LAB_MARK).write_text(f"{lab.name}\n", encoding="utf-8")


def copy_to_work_in(lab: ShippedLab, folder: Path, answers: bool = True) -> None:
    """Copy a lab's folder like `copy_lab`, and adapt the commands and links of its pages to the copy.

    A symbolic link, `docs`, leads to this Weft's documentation; if links are not supported, as in some folders that a
    VM shares with its host, the documentation is copied.
    """
    copy_lab(lab, folder, answers)
    for page in folder.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        text = standalone_page(text, lab.name, lambda name: (folder / name).exists())
        page.write_text(text, encoding="utf-8")
    try:
        (folder / DOCS).symlink_to(DOCS_DIRECTORY, target_is_directory=True)
    except OSError:
        shutil.copytree(DOCS_DIRECTORY, folder / DOCS, ignore=shutil.ignore_patterns(*_NOT_COPIED))


def make_notebooks(labs: Sequence[ShippedLab], folder: Path, answers: bool = True) -> list[Path]:
    """Write the labs' notebooks, with all files that they name, to a new `folder`; return the notebooks' paths.

    Raises EnvironmentLacksError without nbformat, before anything is written.
    """
    names = {lab.name for lab in labs}

    def is_there(path: str) -> bool:
        parts = PurePosixPath(path).parts
        if parts[0] != "labs" or len(parts) == 1:
            return True
        is_left_out = not answers and any(fnmatch(part, each) for part in parts[2:] for each in SOLUTIONS)
        return parts[1] in names and not is_left_out

    notebooks = {lab.name: notebook_of(read_lab_page(lab.folder / "README.md"), is_there) for lab in labs}
    folder.mkdir(parents=True)
    for name in COPIED:
        if name != "labs":
            shutil.copytree(_SOURCES[name], folder / name, ignore=shutil.ignore_patterns(*_NOT_COPIED))
    for lab in labs:
        copy_lab(lab, folder / "labs" / lab.name, answers)
    for name, notebook in notebooks.items():
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{name}.ipynb").write_text(text, encoding="utf-8")
    return [folder / f"{name}.ipynb" for name in notebooks]
