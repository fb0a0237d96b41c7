"""Every command of every page is run by a test, at small size, or the tables say why none can run it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.page_commands import running
from tests.page_commands.page_commands import (
    CommandLine,
    all_commands,
    all_pages,
    beginning_in,
    benchmark_of,
    block_name,
    blocks_for,
    commands_of,
    runner_of,
    unknown_options,
)
from tests.page_commands.tables import BLOCKS, ELSEWHERE, LOSES, NO_TEST, SMALL, STATUS, WHOLE_PAGES
from weft.paths import ROOT


def test_every_command_is_run_or_it_is_said_why_not() -> None:
    assert [f"{each.place}: {each.text}" for each in all_commands() if runner_of(each) is None] == []


@pytest.mark.parametrize(
    "table",
    [BLOCKS, ELSEWHERE, LOSES, NO_TEST, SMALL, STATUS],
    ids=["BLOCKS", "ELSEWHERE", "LOSES", "NO_TEST", "SMALL", "STATUS"],
)
def test_a_table_is_about_commands_that_pages_have(table: dict[str, object]) -> None:
    assert set(table) - {beginning_in(table, command.text) for command in all_commands()} == set()


def test_pages_that_other_tests_run_have_commands_with_prompts() -> None:
    assert set(WHOLE_PAGES) <= {command.page for command in all_commands() if command.is_prompted}


@pytest.mark.parametrize("test", sorted({*ELSEWHERE.values(), *WHOLE_PAGES.values()}))
def test_tests_elsewhere_are_there(test: str) -> None:
    path, name = test.split("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_options_of_benchmarks_are_there() -> None:
    found = {each.place: benchmark_of(each) for each in all_commands()}
    assert any(found.values())
    unknown = {
        each.place: options
        for each in all_commands()
        if (benchmark := benchmark_of(each)) and (options := unknown_options(each, benchmark))
    }
    assert unknown == {}


@pytest.mark.slow
@pytest.mark.parametrize("block", blocks_for("alone"), ids=block_name)
def test_commands_run(block: list[CommandLine], tmp_path: Path) -> None:
    directory = running.prepared(block, tmp_path)
    for command in block:
        running.run(command, directory)


def test_all_pages_are_read() -> None:
    names = {str(page.relative_to(ROOT)) for page in all_pages()}
    assert {"README.md", "docs/howto/routing.md", "labs/01-allreduce/README.md", "examples/README.md"} < names


def texts(source: str) -> list[tuple[int, str, bool]]:
    return [(each.line, each.text, each.as_root) for each in commands_of(source, "a.md")]


def test_a_list_of_commands_has_remarks() -> None:
    page = (
        "```\nsudo .venv/bin/weft lab x.yaml   # a 'lab'\n     weft new 'a   b' \\\n  c   # why\n   # and more\n```\n"
    )
    assert texts(page) == [(2, "weft lab x.yaml", True), (3, "weft new 'a   b' c", False)]


def test_what_follows_a_prompt_is_a_command_and_the_rest_output() -> None:
    page = "- a\n\n  ```\n  $ weft labs\n  weft: no\n  mininet> h0 ping h1\n  ```\n\n```yaml\n$ weft\n```\n"
    assert texts(page) == [(4, "weft labs", False), (6, "mininet> h0 ping h1", False)]


@pytest.mark.parametrize("language", ["", "sh", "bash"])
def test_an_unknown_program_in_a_list_is_an_error_with_its_place(language: str) -> None:
    with pytest.raises(ValueError, match=r"a\.md:3: .*'frobnicate it'"):
        commands_of(f"```{language}\nweft labs\nfrobnicate it\n```\n", "a.md")


def test_scripts_have_comments_and_no_remarks() -> None:
    assert texts("```sh\n# why\nweft labs  # all\n```\n") == [(3, "weft labs", False)]
    with pytest.raises(ValueError, match=r"a\.md:3: "):
        commands_of("```sh\nweft labs\n  of which all\n```\n", "a.md")


@pytest.mark.parametrize("opening", ["", "sh", "console"])
@pytest.mark.parametrize(
    "line", ["weft labs    all labs", "weft new 'a' \\\n  b   a folder", "weft labs  all  # of them"]
)
def test_words_that_a_shell_would_take_as_arguments_are_an_error_with_their_place(opening: str, line: str) -> None:
    prompt = "$ " if opening == "console" else ""
    with pytest.raises(ValueError, match=r"a\.md:3: a shell takes the remark"):
        commands_of(f"```{opening}\n{prompt}weft labs\n{prompt}{line}\n```\n", "a.md")


def test_a_remark_goes_on_behind_a_number_sign() -> None:
    with pytest.raises(ValueError, match=r"a\.md:3: not a command"):
        commands_of("```\nweft labs  # all\n           of them\n```\n", "a.md")


def test_output_and_scenarios_are_no_commands() -> None:
    assert texts("```\nlargest queue 12 B\n```\n```yaml\nweft: run\n```\n```text\nweft: no\n```\n") == []


def test_a_command_that_nobody_runs_is_found() -> None:
    (docker, weft) = commands_of("```\ndocker run weft\nsudo weft clean-all\n```\n", "a.md")
    assert (runner_of(docker), runner_of(weft)) == (None, None)


def test_beginnings_are_of_words() -> None:
    table = {"weft run": "a", "weft run x": "b"}
    assert [beginning_in(table, each) for each in ("weft run x y", "weft run xy", "weft runs")] == [
        "weft run x",
        "weft run",
        None,
    ]
