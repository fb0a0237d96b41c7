"""The page on which packets are stepped through (`weft trace --page`)."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from browser import Elements, open_page
from weft.cli import weft
from weft.report import stepping

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "debugging"


def weft_trace(*arguments: object) -> None:
    result = CliRunner().invoke(weft, ["trace", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output


def data_of(page: Path) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stepping") / "packets.html"
    weft_trace(EXAMPLES / "router.p4", "--stf", EXAMPLES / "router.stf", "--page", path)
    return path


def fields_after(steps: list[dict[str, Any]], count: int) -> dict[str, str]:
    """Return what fields hold after so many steps."""
    fields: dict[str, str] = {}
    for step in steps[:count]:
        fields = {name: value for name, value in fields.items() if name not in step["gone"]} | step["set"]
    return fields


def test_steps_have_their_line_and_what_changed(page: Path) -> None:
    data = data_of(page)
    assert [each["name"] for each in data["packets"]] == ["packet 1", "packet 2", "packet 3"]
    steps = data["packets"][0]["steps"]
    assert steps[0]["text"] == "in by port 1, 42 bytes"
    assert steps[0]["set"]["standard_metadata.ingress_port"] == "1"
    (index,) = [index for index, step in enumerate(steps) if step["text"].startswith("ipv4.ttl = 63")]
    assert steps[index]["set"] == {"ipv4.ttl": "63"}
    (source,) = data["files"].values()
    assert source[steps[index]["line"] - 1].strip() == "hdr.ipv4.ttl = hdr.ipv4.ttl - 1;"
    before, after = fields_after(steps, index), fields_after(steps, index + 1)
    assert (before["ipv4.ttl"], after["ipv4.ttl"]) == ("64", "63")
    assert after["ethernet.destination"] == "02:00:00:00:00:02"
    assert "udp.length" in after
    assert steps[-1]["text"] == "out by port 2, 42 bytes"
    assert data["packets"][1]["steps"][-1]["text"] == "dropped: program ingress"


def test_a_select_is_at_the_case_that_is_taken(page: Path) -> None:
    data = data_of(page)
    (source,) = data["files"].values()
    cases = [
        source[step["line"] - 1].strip() for step in data["packets"][2]["steps"] if step["text"].startswith("select")
    ]
    assert cases == ["0x0800: parse_ipv4;", "default: accept;"], "the third packet is TCP"


def test_cells_of_registers_are_there_from_the_beginning_and_change_at_the_write(tmp_path: Path) -> None:
    program = (EXAMPLES / "router.p4").read_text()
    source = program.replace(
        "counter(8, CounterType.packets) received;",
        "register<bit<32>>(8) seen;\n    register<bit<32>>(8) other;",
    ).replace(
        "received.count((bit<32>)standard_metadata.ingress_port);",
        "bit<32> count; seen.read(count, 1); seen.write(1, count + 5); other.write(2, 7);",
    )
    (tmp_path / "registers.p4").write_text(source)
    path = tmp_path / "packets.html"
    weft_trace(tmp_path / "registers.p4", "--stf", EXAMPLES / "router.stf", "--page", path)
    steps = data_of(path)["packets"][1]["steps"]
    cells = {"RouterIngress.seen[1]": "5", "RouterIngress.other[2]": "7"}
    assert {name: steps[0]["set"][name] for name in cells} == cells, "as the packet before left them"
    changes = [step for step in steps[1:] if cells.keys() & step["set"].keys()]
    assert [step["set"] for step in changes] == [{"RouterIngress.seen[1]": "0xa"}]
    assert changes[0]["text"].startswith("RouterIngress.seen[1] = 0xa")


def test_the_page_opens_at_a_step_and_shows_it(page: Path, tmp_path: Path) -> None:
    opened = open_page(page)
    assert opened.console == []
    elements = Elements(opened.dom)
    assert elements.tags["option"] == 3
    steps = data_of(page)["packets"][0]["steps"]
    first = next(number for number, step in enumerate(steps) if step["file"])
    assert f"step {first + 1} of {len(steps)}" in opened.dom
    assert f'<p id="step" role="status">{html.escape(steps[first]["text"], quote=False)}</p>' in opened.dom
    assert elements.classes["current"] == 1
    assert "default-src 'none'" in opened.dom
    assert elements.classes.get("changed", 0) == len(steps[first]["set"])


def test_packets_of_a_run_have_their_time_and_switch(tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    weft_trace(EXAMPLES / "incast.yaml", "--switch", "p0l0", "--page", path)
    (packet,) = data_of(path)["packets"]
    assert packet["name"] == "1.09152 µs, p0l0: packet 1"
    assert any(step["file"].endswith("forwarding.p4") for step in packet["steps"])


def test_a_page_has_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepping, "MOST_PACKETS", 2)
    path = tmp_path / "two.html"
    weft_trace(EXAMPLES / "router.p4", "--stf", EXAMPLES / "router.stf", "--page", path)
    assert len(data_of(path)["packets"]) == 2
    assert "1 more are left out" in path.read_text()


def test_a_switch_that_runs_has_no_page(tmp_path: Path) -> None:
    result = CliRunner().invoke(weft, ["trace", "p0l0", "--page", str(tmp_path / "x.html")])
    assert result.exit_code == 2
