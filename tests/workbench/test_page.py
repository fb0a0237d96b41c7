"""The workbench as its user meets it, in a browser: a template, a key, a run, its report, a comparison."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from PIL import Image

from asking import Asking
from devtools import Page
from weft.paths import ROOT
from weft.workbench.server import WorkbenchServer

PICTURE = ROOT / "docs/pictures/workbench.png"
READY = "document.documentElement.dataset.ready"
DRAWN = 'document.querySelector("#drawing svg") && !document.getElementById("drawing").classList.contains("old")'
IDLE = "!workbench.runs.jobs.running.length"
SHOWN = '!document.getElementById("frame").hidden && document.getElementById("frame").getAttribute("src")'


def click(page: Page, name: str) -> None:
    page.value(f"document.getElementById({json.dumps(name)}).click()")


def fill(page: Page, **values: str) -> None:
    """Fill in the dialog's fields and submit it; waits until it has closed."""
    for name, value in values.items():
        page.value(
            f'(() => {{ const own = document.querySelector("#dialog form").elements[{json.dumps(name)}];'
            f'own.value = {json.dumps(value)}; own.dispatchEvent(new Event("change")); }})()'
        )
    click(page, "dialog-ok")
    page.wait_for('!document.getElementById("dialog").open')


def type_key(page: Page, key: str, value: str) -> None:
    """Type a key's value into the form, as the reader does, and wait until the form shows what the file has."""
    field = f'[...document.querySelectorAll("#form .field")].find((each) => each.dataset.key === {json.dumps(key)})'
    page.wait_for(field)
    before = page.value("workbench.state.scenario.version")
    page.value(
        f'(() => {{ const own = {field}.querySelector("input, select, textarea");'
        f'own.value = {json.dumps(value)}; own.dispatchEvent(new Event("change")); }})()'
    )
    page.wait_for(f"workbench.state.scenario.version !== {json.dumps(before)}")


@pytest.mark.slow
def test_a_scenario_from_a_template_to_a_comparison(tmp_path: Path) -> None:
    folder = tmp_path / "bench"
    folder.mkdir()
    with WorkbenchServer(folder, port=0) as server, Page(server.url, tmp_path, 1280, 1120) as page:
        page.wait_for(READY)
        # The token is no longer in the address, and the page works without it there.
        assert page.value("location.href") == f"{server.base_url}/#"
        click(page, "new")
        fill(page, file="first.yaml", template="small")
        page.wait_for(DRAWN)
        assert page.value('document.querySelectorAll("#drawing svg title").length') > 12
        original = (folder / "first.yaml").read_text(encoding="utf-8")

        # A kind's own keys come first.
        fields = '[data-key="fabric"] > .content > .field'
        keys = page.value(f"[...document.querySelectorAll('{fields}')].map((each) => each.dataset.key)")
        assert keys[:3] == ["fabric.kind", "fabric.leaves", "fabric.spines"]

        # A wrong value is explained at its key; the old drawing is grey meanwhile.
        type_key(page, "fabric.leaves", "many")
        wrong = page.value("document.querySelector('[data-key=\"fabric.leaves\"] .wrong').textContent")
        assert wrong == "fabric.leaves: 'many' is not a whole number"
        assert page.value('document.querySelector(\'[data-key="fabric.leaves"] input\').getAttribute("aria-invalid")')
        assert not page.value(DRAWN)
        type_key(page, "fabric.leaves", "3")
        page.wait_for(DRAWN)
        assert "p0l2" in page.value('document.getElementById("drawing").textContent')
        changed = (folder / "first.yaml").read_text(encoding="utf-8")
        assert changed == original.replace("leaves: 2 ", "leaves: 3 ").replace("leaves: 2\n", "leaves: 3\n")

        click(page, "run")
        report = page.wait_for(SHOWN)
        assert [path.name for path in (folder / "runs").iterdir()] == ["first-1"]
        assert page.value('document.querySelector("#runs tbody").textContent').startswith("first-1passed")
        assert page.value('document.getElementById("frame").sandbox.value') == "allow-scripts allow-downloads"
        # Opened by itself, in the same sandbox, the report has drawn its figures.
        with Page(f"{server.base_url}{report}", tmp_path / "report") as alone:
            alone.wait_for('document.querySelectorAll(".drawing svg").length')
            assert alone.value("origin") == "null"
            assert alone.console == []

        click(page, "vary")
        fill(page, key="transport.congestion_control", value="hpcc", to="hpcc.yaml")
        compared = page.wait_for("workbench.runs.pages.compare")
        assert "page" in compared, compared
        varied = (folder / "hpcc.yaml").read_text(encoding="utf-8")
        differs = "name: first-fabric-congestion-control-hpcc"
        expected = changed.replace("congestion_control: dcqcn", "congestion_control: hpcc")
        assert varied == expected.replace("name: first-fabric", differs).replace("weft run first", "weft run hpcc")
        _, _, text = Asking(server).raw(compared["page"])
        assert "first-1" in text
        assert "hpcc-1" in text
        if os.environ.get("WEFT_RENEW_PAGES"):
            page.value("new Promise((done) => setTimeout(done, 5000))")
            page.value('document.getElementById("folder").textContent = "~/bench"')
            page.picture(PICTURE)
            with Image.open(PICTURE) as picture:
                picture.convert("RGB").quantize(64).save(PICTURE, optimize=True)

        # The switch is chosen from the drawing; a trace is a page, too.
        click(page, "tab-trace")
        page.value('document.querySelector("#trace button").click()')
        traced = page.wait_for("workbench.runs.pages.trace")
        assert "page" in traced, traced

        click(page, "tab-timeline")
        page.wait_for('document.querySelector("#message button")')
        page.value('document.querySelector("#message button").click()')
        page.wait_for('document.getElementById("frame").getAttribute("src")?.endsWith("#figure-timeline")')
        assert "timelines: true" in (folder / "hpcc.yaml").read_text(encoding="utf-8")
        assert page.console == []


def test_text_and_form_are_two_views_of_a_file(bench: Asking, folder: Path, tmp_path: Path) -> None:
    with Page(bench.server.url, tmp_path, 900, 900) as page:
        page.wait_for(READY)
        assert page.value("document.documentElement.scrollWidth") <= 900
        click(page, "tab-text")
        text = (folder / "pair.yaml").read_text(encoding="utf-8") + "seed: x\n"
        page.value(
            f'(() => {{ const own = document.getElementById("text"); own.value = {json.dumps(text)};'
            'own.dispatchEvent(new Event("input")); })()'
        )
        page.wait_for('document.getElementById("saved").textContent === "saved"')
        assert (folder / "pair.yaml").read_text(encoding="utf-8") == text
        assert page.value('document.getElementById("problems").textContent').startswith("line 8: seed: 'x' is not")
        click(page, "tab-form")
        page.value('document.querySelector("#problems button").click()')
        assert page.value("document.activeElement.id") == "key-seed"

        # A key is found by its name, and opens what holds it.
        page.value(
            '(() => { const own = document.getElementById("find"); own.value = "observe.queues";'
            'own.dispatchEvent(new Event("change")); })()'
        )
        assert page.value("document.activeElement.id") == "key-observe.queues"
        type_key(page, "observe.queues", "all")
        type_key(page, "seed", "")
        assert (folder / "pair.yaml").read_text(encoding="utf-8") == text.replace("seed: x", "observe:\n  queues: all")

        # Another program writes the file: the page shows it when the reader comes back, and overwrites nothing.
        (folder / "pair.yaml").write_text("seed: 7\n", encoding="utf-8")
        page.value('dispatchEvent(new Event("focus"))')
        page.wait_for('document.getElementById("text").value === "seed: 7\\n"')
        assert page.console == []


def test_names_and_values_that_look_like_markup_are_text(bench: Asking, folder: Path, tmp_path: Path) -> None:
    markup = "<img src=x onerror=alert(1)>"
    (folder / "pair.yaml").write_text(
        f"name: '{markup}'\nfabric: {{switches: {{names: ['{markup}']}}}}\n'{markup}': 1\n", encoding="utf-8"
    )
    with Page(bench.server.url, tmp_path) as page:
        page.wait_for(READY)
        click(page, "run")
        page.wait_for('!document.getElementById("output").hidden')
        assert markup in page.value("document.body.textContent")
        assert page.value('document.querySelectorAll("img").length') == 0
        assert page.console == []


def test_a_run_is_cancelled_from_a_page_that_was_opened_later(bench: Asking, folder: Path, tmp_path: Path) -> None:
    items = "  - {incast: h0, bytes_per_sender: 2GiB, data: lengths}\n" * 100
    text = (folder / "pair.yaml").read_text(encoding="utf-8")
    (folder / "pair.yaml").write_text(text.partition("  - incast")[0] + items, encoding="utf-8")
    with Page(bench.server.url, tmp_path) as page:
        page.wait_for(READY)
        click(page, "run")
        page.wait_for('document.querySelector("progress")?.value > 0 || !document.getElementById("output").hidden')
        assert page.value('document.getElementById("output").hidden')
        with Page(bench.server.url, tmp_path / "later") as later:
            later.wait_for('document.querySelector("#running button")')
            later.value('document.querySelector("#running button").click()')
        page.wait_for(IDLE)
        assert list((folder / "runs").iterdir()) == []


def test_without_the_token_the_page_says_so(bench: Asking, tmp_path: Path) -> None:
    with Page(f"{bench.server.base_url}/", tmp_path) as page:
        page.wait_for('!document.getElementById("problem").hidden')
        assert "the token is missing or wrong" in page.value('document.getElementById("problem").textContent')


@pytest.mark.parametrize("width", [1280, 900, 390])
def test_nothing_is_wider_than_the_window(bench: Asking, tmp_path: Path, width: int) -> None:
    with Page(bench.server.url, tmp_path) as page:
        page.become_a_phone(width, 900)
        page.wait_for(f"{READY} && innerWidth === {width}")
        page.wait_for(DRAWN)
        assert page.value("document.documentElement.scrollWidth") <= width
        inputs = '[...document.querySelectorAll("input, select, textarea")]'
        assert (
            page.value(f"{inputs}.filter((each) => !each.labels?.length && !each.ariaLabel).map((each) => each.id)")
            == []
        )
