"""The page in a browser: what it shows of a fabric in virtual time, and of names that look like markup."""

from pathlib import Path
from typing import Any

from devtools import Page
from live_views import reader_in_virtual_time, view_of
from weft.controller.event_log import ControllerEvent
from weft.live import Place
from weft.live.contents import Contents
from weft.live.server import LivePageServer
from weft.live.view import LiveView
from weft.metrics.of_lab import LabMetrics
from weft.run.fabric import Fabric

LINE_OF = '[...document.querySelectorAll("#drawing [data-links]")].find((e) => e.dataset.links === "%s")'
ROWS = '[...document.querySelectorAll("#%s tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent))'


class Remembered:
    """Answers with what was read beforehand: virtual time goes on in its own thread alone."""

    def __init__(self, contents: Contents, switch: str, table: str) -> None:
        self._names = contents.names(switch)
        self._rows = contents.rows(switch, "tables", table)

    def names(self, switch: str) -> dict[str, list[str]]:
        return self._names

    def rows(self, switch: str, kind: str, name: str) -> dict[str, Any]:
        return self._rows if name == "ipv4_lpm" else {"columns": ["index", "value"], "rows": [], "more": 0}


def test_the_page_shows_load_queues_events_and_entries(fabric: Fabric, tmp_path: Path) -> None:
    contents = Contents(reader_in_virtual_time(fabric.lab))
    view = LiveView(fabric.lab, LabMetrics(fabric.lab).families, Remembered(contents, "p0l0", "ipv4_lpm"))  # type: ignore[arg-type]
    view.sample()
    fabric.incast("h0", 256 * 1024)
    view.sample()
    links = {link["name"]: number for number, link in enumerate(view.facts()["links"])}
    with LivePageServer(Place(port=0), view, "incast") as server, Page(server.url, tmp_path) as page:
        page.wait_for('document.getElementById("status").textContent === "live" && state.number')
        page.wait_for('document.querySelectorAll(".chart polyline").length')

        def colour(link: str) -> str:
            return str(page.value(f'{LINE_OF % links[link]}.getAttribute("stroke")'))

        idle, loaded = colour("h5<->p0l1"), colour("h0<->p0l0")
        red, blue = (int(loaded[place : place + 2], 16) for place in (1, 5))
        assert idle != loaded
        assert red > 190
        assert red > 2 * blue
        assert page.value(ROWS % "busiest")[0][:2] == ["p0l0:1", "h0"]
        assert ["marks begin", "p0l0:1"] in [row[1:3] for row in page.value(ROWS % "events")]

        # Pointing at the link gives its figures, in the page's words.
        page.value(f'{LINE_OF % links["h0<->p0l0"]}.dispatchEvent(new PointerEvent("pointermove", {{bubbles: true}}))')
        tip = page.value('document.getElementById("tip").textContent').split("\n")
        assert tip[0] == "h0<->p0l0"
        assert tip[2].startswith("p0l0 → h0: ")
        assert "marked" in tip[2]

        # Clicking it charts its port alone, and the address remembers that.
        page.value(f'{LINE_OF % links["h0<->p0l0"]}.dispatchEvent(new MouseEvent("click"))')
        page.wait_for('document.querySelectorAll("#chosen button").length === 1')
        assert page.value('document.getElementById("chosen").textContent') == "p0l0:1 → h0"
        assert "ports=p0l0%3A1" in page.value("location.hash")

        page.value('at("contents").value = "tables/ipv4_lpm"; at("contents").dispatchEvent(new Event("change"))')
        page.wait_for('document.querySelectorAll("#rows tbody tr").length')
        assert "10.0.0.1/32" in [row[0] for row in page.value(ROWS % "rows")]

        page.become_a_phone()
        page.wait_for("screen.width === 390")
        assert page.value("document.documentElement.scrollWidth") == 390

        # What comes later is shown; a link that fails is dashed, in a colour of its own.
        link = fabric.topology.link_between("p0l0", "p0s1")
        fabric.lab.controller.call(fabric.lab.operations.link_down(link))
        fabric.lab.operations.log.add(ControllerEvent(0, "failed", "<img src=x onerror=alert(1)>"))
        view.sample()
        page.wait_for(f'{LINE_OF % links["p0l0<->p0s1"]}.getAttribute("stroke-dasharray")')
        assert colour("p0l0<->p0s1") == "#d1007a"
        shown = page.value(ROWS % "events")
        assert any(row[2] == "p0l0<->p0s1" for row in shown)
        assert "<img src=x onerror=alert(1)>" in [row[2] for row in shown]
        assert page.value('document.querySelectorAll("img").length') == 0
        assert page.console == []
        server.__exit__()
        page.wait_for('document.getElementById("status").textContent.startsWith("the lab has ended")')


def test_a_page_without_its_token_says_so(fabric: Fabric, tmp_path: Path) -> None:
    with LivePageServer(Place(port=0), view_of(fabric.lab), "incast") as server:
        address = server.url.split("?")[0]
        with Page(address, tmp_path) as page:
            assert "the token is missing or wrong" in page.value("document.body.textContent")
