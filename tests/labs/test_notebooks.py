"""Notebooks of labs: valid, the same for the same page, complete; `test_pages.py` runs them from beginning to end."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner

import pages
from plotted import named_plots, plot_cells
from weft.cli import weft
from weft.errors import BadInputError
from weft.labs.notebook import SKIPPED, notebook_of
from weft.labs.page import read_lab_page
from weft.paths import ROOT
from weft.system.shipped_labs import shipped_labs

LABS = shipped_labs()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("notebooks") / "labs"
    done = CliRunner().invoke(weft, ["labs", "notebooks", str(made)])
    assert done.exit_code == 0, done.output
    return made


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_notebook_has_every_command_of_its_page_and_no_output(lab, folder: Path) -> None:
    notebook = nbformat.read(folder / f"{lab.name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    commands = [cell.source for cell in pages.command_cells(notebook)]
    of_page = [example.source for example in pages.examples(lab.folder / "README.md")]
    assert commands == [
        "%%bash\n" + each.replace(".venv/bin/weft", "weft").replace(".venv/bin/python", "python") for each in of_page
    ]
    assert notebook == nbformat.from_dict(notebook_of(read_lab_page(lab.folder / "README.md")))


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_notebook_plots_what_a_command_before_has_written(lab, folder: Path) -> None:
    notebook = nbformat.read(folder / f"{lab.name}.ipynb", as_version=4)
    cells = plot_cells(notebook)
    assert cells
    for cell in cells:
        ((directory, _),) = named_plots(cell.source)
        before = [each.source for each in notebook.cells[: notebook.cells.index(cell)]]
        assert any(f"--out {directory}" in source for source in before if source.startswith("%%bash"))


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_each_question_has_room_for_its_answer(lab, folder: Path) -> None:
    notebook = nbformat.read(folder / f"{lab.name}.ipynb", as_version=4)
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert texts.count("*Your answer:*") == len(read_lab_page(lab.folder / "README.md").questions)


def test_links_and_pictures_of_notebooks_are_there(folder: Path) -> None:
    assert missing_links(folder) == []


def missing_links(folder: Path) -> list[tuple[str, str]]:
    missing: list[tuple[str, str]] = []
    for path in sorted(folder.glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                targets = [target.partition("#")[0] for _, _, target in pages.links_of(cell.source)]
                missing += [(path.name, each) for each in targets if each and not (folder / each).exists()]
    return missing


def test_what_needs_root_says_so_and_is_not_run_with_the_rest() -> None:
    notebook = notebook_of(read_lab_page(ROOT / "labs" / "01-allreduce" / "README.md"))
    (cell,) = [cell for cell in notebook["cells"] if SKIPPED in pages.tags(cell)]
    assert "run labs/01-allreduce/scenario.yaml" in cell["source"]
    assert "skipped: this needs root" in cell["source"]


def test_answers_can_be_left_out(tmp_path: Path) -> None:
    for command in (
        ["copy", "09-links", str(tmp_path / "a")],
        ["notebooks", str(tmp_path / "b"), "09", "10", "21"],
    ):
        done = CliRunner().invoke(weft, ["labs", *command, "--without-answers"])
        assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "b").glob("*.ipynb")) == [
        "09-links.ipynb",
        "10-failures.ipynb",
        "21-rdma-programming.ipynb",
    ]
    assert missing_links(tmp_path / "b") == []
    cells = nbformat.read(tmp_path / "b" / "21-rdma-programming.ipynb", as_version=4).cells
    of_solution = [cell.cell_type for cell in cells if "solution/parameter_server.py:Server" in cell.source]
    assert of_solution == ["markdown", "markdown"], "commands that could not run"
    assert not any(cell.cell_type == "code" and "weft.plot" in cell.source for cell in cells), "of such commands"
    assert "answers" not in cells[-1].source
    assert list(tmp_path.rglob("labs/*/README.md"))
    assert list(tmp_path.rglob("solution*")) == []


def test_notebooks_never_replace_anything(tmp_path: Path) -> None:
    done = CliRunner().invoke(weft, ["labs", "notebooks", str(tmp_path)])
    assert isinstance(done.exception, BadInputError)
    assert "exists already" in str(done.exception)
