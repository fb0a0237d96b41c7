"""The files that pages name exist, and what their Python imports of Weft does, too."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("labs/*/*.md"),
        *ROOT.glob("examples/*.md"),
    ]
)
FOLDERS = "benchmarks|controller|docs|engine|examples|fuzz|labs|p4|tests|topologies|traffic|vagrant|weft"
NAMED_PATH = re.compile(rf"`((?:{FOLDERS})/[\w./*-]*)`")
# A reader's own file, a file yet to be written, and a folder that only wheels have.
NOT_OURS = re.compile(r"mine\.|NAME|^weft/shipped/")
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_named_files_exist(page: Path) -> None:
    named = set(NAMED_PATH.findall(page.read_text(encoding="utf-8")))
    assert (
        sorted(name for name in named if not NOT_OURS.search(name) and not list(ROOT.glob(name.rstrip("/"))))
        == []
    )


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_imports_of_examples_resolve(page: Path) -> None:
    for code in PYTHON.findall(page.read_text(encoding="utf-8")):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.split(".")[0] == "weft":
                        importlib.import_module(alias.name)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "weft":
                module = importlib.import_module(str(node.module))
                for alias in node.names:
                    if not hasattr(module, alias.name):
                        importlib.import_module(f"{node.module}.{alias.name}")
