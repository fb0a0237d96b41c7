"""The documentation as a site: it builds without a warning, and readers find their way in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from devtools import Page
from weft.paths import ROOT

# The site takes half a minute of processor time to build.
pytestmark = [pytest.mark.slow, pytest.mark.one_part, pytest.mark.timeout(900)]
pytest.importorskip("sphinx")
WIDTH = 1200
REPORTS = "docs/reports/"
"""Pages whose tables have the columns that a draft asks for, and scroll by themselves."""
# Elements that a reader would have to scroll to, one description each: the page itself, then tables within it.
TOO_WIDE = """
[document.documentElement, ...document.querySelectorAll("article table, article .table-wrapper")]
  .filter((each) => each.scrollWidth > each.clientWidth + 1 || each.getBoundingClientRect().right > innerWidth + 1)
  .map((each) => `${each.tagName} of ${each.scrollWidth} px: ${each.textContent.trim().slice(0, 40)}`)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", "docs", "-b", "html", ".", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_fits_a_window_of_1200_pixels(site: Path, tmp_path: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 100
    found = {}
    with Page(pages[0].as_uri(), tmp_path, width=WIDTH) as browser:
        for page in pages:
            browser.open(page.as_uri())
            name = str(page.relative_to(site))
            wide = browser.value(TOO_WIDE)
            if name.startswith(REPORTS):
                wide = [each for each in wide if each.startswith("HTML ")]
            if wide:
                found[name] = wide
    assert found == {}


def test_the_landing_page_has_four_ways_in_of_four_pages_each(site: Path, tmp_path: Path) -> None:
    with Page((site / "docs" / "index.html").as_uri(), tmp_path, width=WIDTH) as browser:
        links = browser.value(
            """[...document.querySelectorAll(".ways > div")]
              .map((way) => [...way.querySelectorAll("a")].map((each) => each.href))"""
        )
        captions = browser.value(
            '[...document.querySelectorAll(".sidebar-tree .caption-text")].map((each) => each.textContent)'
        )
    assert [len(way) for way in links] == [4, 4, 4, 4]
    for link in (each for way in links for each in way):
        assert Path(link.removeprefix("file://").partition("#")[0]).is_file()
    assert captions[:4] == ["Start", "Run", "Look", "Your own P4"]
    assert {"Hosts and RDMA", "Topologies", "Courses and labs", "Reference", "Design"} < set(captions)


def test_answers_are_folded_away(site: Path, tmp_path: Path) -> None:
    lab = site / "labs" / "01-allreduce"
    with Page((lab / "README.html").as_uri(), tmp_path, width=WIDTH) as browser:
        shown = """[...document.querySelectorAll(".sidebar-tree a")]
          .filter((each) => each.checkVisibility()).filter((each) => each.href.endsWith("solution.html")).length"""
        assert browser.value(shown) <= 1  # that of the lab itself
        browser.open((lab / "solution.html").as_uri())
        assert browser.value('document.querySelectorAll("article details:not([open])").length') == 3


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("kmin", "docs/scenario.html"),
        ("weft.rdma.QP", "docs/api/rdma.html"),
        ("oversubscription", "docs/topologies.html"),
    ],
)
def test_the_search_finds_pages_from_a_file(words: str, page: str, site: Path, tmp_path: Path) -> None:
    with Page(f"{(site / 'search.html').as_uri()}?q={words}", tmp_path, width=WIDTH) as browser:
        found = browser.wait_for(
            """document.querySelector("#search-results .search-summary")?.textContent.includes("found")
               && [...document.querySelectorAll("#search-results ul.search a")].map((each) => each.href)"""
        )
    assert any(f"/{page}" in link for link in found)
    assert browser.console == []


def test_the_api_s_pages_have_every_public_name(site: Path) -> None:
    import weft
    import weft.rdma
    import weft.topologies

    for module, name in ((weft, "weft"), (weft.rdma, "rdma"), (weft.topologies, "topologies")):
        text = (site / "docs" / "api" / f"{name}.html").read_text(encoding="utf-8")
        missing = [each for each in module.__all__ if f'id="{module.__name__}.{each}"' not in text]
        assert [each for each in missing if f'id="module-{module.__name__}.{each}"' not in text] == []
    text = (site / "docs" / "api" / "weft.html").read_text(encoding="utf-8")
    assert str(ROOT) not in text
