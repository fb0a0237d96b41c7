"""Copies of labs: what their pages name is there, and their commands run there, away from a checkout."""

from __future__ import annotations

import errno
import os
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import pages
from weft.cli import weft
from weft.labs.standalone import standalone_page
from weft.system.shipped_labs import shipped_labs

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")


def copied(lab: str, folder: Path, *options: str) -> Path:
    done = CliRunner().invoke(weft, ["labs", "copy", lab, str(folder / "mine"), *options])
    assert done.exit_code == 0, done.output
    return folder / "mine"


@pytest.mark.parametrize("options", [(), ("--without-answers",)], ids=["with answers", "without"])
@pytest.mark.parametrize("lab", shipped_labs(), ids=lambda lab: lab.name)
def test_a_copys_page_names_what_is_there(lab, options: tuple[str, ...], tmp_path: Path) -> None:
    folder = copied(lab.name, tmp_path, *options)
    texts = [page.read_text(encoding="utf-8") for page in sorted(folder.glob("*.md"))]
    assert len(texts) == (1 if options else 2)
    page = "\n".join(texts)
    targets = [target for target in LINK.findall(page) if "://" not in target]
    assert [target for target in targets if not (folder / target).exists()] == []
    assert ("solution.md" in targets) is not bool(options)
    assert ".venv/" not in page
    assert f"labs/{lab.name}" not in page
    assert "```console\n$ weft " in page or "```console\n$ python " in page


def test_docs_are_copied_where_a_folder_takes_no_symbolic_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPROTO, "Protocol error")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    docs = copied("20", tmp_path) / "docs"
    assert not docs.is_symlink()
    assert (docs / "cost.md").is_file()


@pytest.mark.slow
def test_the_commands_of_a_copys_page_run_in_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copied("19", tmp_path, "--without-answers")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    shown = pages.examples(folder / "README.md")
    assert len(shown) == 5
    for example in shown:
        assert pages.difference(example.shown, pages.output_of(example.command, folder)) == "", example.command


def test_what_is_not_there_is_text(tmp_path: Path) -> None:
    page = (
        "Run `sudo .venv/bin/weft run labs/01-one/a.yaml` or `labs/02-two/nothing.yaml`.\n\n"
        "See [a](a.yaml), [b](../02-two/README.md), [docs](../../docs/cost.md#prices), [web](https://example.org).\n\n"
        "```\n$ .venv/bin/python labs/01-one/x.py labs/01-one labs/01-one-more\n```\n\n"
        "The [answers](solution.md).\n"
    )
    assert standalone_page(page, "01-one", {"a.yaml"}.__contains__) == (
        'Run `sudo "$(command -v weft)" run a.yaml` or `labs/02-two/nothing.yaml`.\n\n'
        "See [a](a.yaml), b, [docs](docs/cost.md#prices), [web](https://example.org).\n\n"
        "```\n$ python x.py . labs/01-one-more\n```\n"
    )
