"""Each lab's page, and some others, show what their commands print. `WEFT_RENEW_PAGES=1` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import pages
from weft.paths import ROOT


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: str(page.relative_to(ROOT).with_suffix("")))
def test_a_page_shows_what_its_commands_print(page: Path, tmp_path: Path) -> None:
    directory = pages.workplace(tmp_path, ROOT)
    shown = pages.examples(page)
    assert shown, f"{page} shows no command whose output is checked (a fenced block of the language 'console')"
    run = pages.outputs_of_notebook if page in pages.LABS else pages.outputs_of_commands
    outputs = list(zip(shown, run(page, directory), strict=True))
    if os.environ.get("WEFT_RENEW_PAGES"):
        pages.renew(page, outputs)
        return
    for example, printed in outputs:
        difference = pages.difference(example.shown, printed)
        assert not difference, f"{page}:{example.first_line + 1}: $ {example.command}\n{difference}"


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a"], ["a", "b"], False),
        (["a", "…"], ["a", "b"], True),
        (["…", "b"], ["a", "b"], True),
        (["…", "a"], ["a", "b"], False),
        (["…", "a", "…"], ["a", "b"], True),
        (["a", "…", "c", "…", "e"], ["a", "b", "c", "d", "e"], True),
        (["…", "c", "…", "b", "…"], ["a", "b", "c", "d"], False),
        (["…", "time 12", "…"], ["time 13"], False),
        ([], [], True),
        ([], ["a"], False),
    ],
)
def test_what_a_page_leaves_out_is_an_ellipsis(shown: list[str], printed: list[str], same: bool) -> None:
    assert (pages.difference(shown, printed) == "") is same


def test_a_page_is_renewed_line_by_line(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(
        "# A\n\n```console\n$ run \\\n    it\n…\nlargest queue 12 B\n…\n$ other\nx\n```\n\n```\n$ no\n```\n"
    )
    run, other = pages.examples(page)
    assert (run.command, run.shown) == ("run it", ["…", "largest queue 12 B", "…"])
    assert (other.command, other.shown) == ("other", ["x"])
    pages.renew(page, [(run, ["time 3", "largest queue 15 B", "end"]), (other, ["y"])])
    run, other = pages.examples(page)
    assert (run.shown, other.shown) == (["…", "largest queue 15 B", "…"], ["y"])


def test_a_command_without_output_is_shown_whole(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("```console\n$ run\n```\n")
    (run,) = pages.examples(page)
    pages.renew(page, [(run, ["a", "b"])])
    assert page.read_text() == "```console\n$ run\na\nb\n```\n"
