"""Packets that a user's program drops are counted, said and found again: no run looks well that lost them."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from weft.cli import weft
from weft.errors import CheckFailedError
from weft.paths import ROOT

EXAMPLE = ROOT / "examples" / "own_network"
MISSED = "program: Route.drop (miss in Route.routes)"
PINGS = "traffic[0]={ping: [h1->h2], count: 3}"


def network(folder: Path, entries: list[str]) -> Path:
    """The example's network, with those of s1's entries that name one of these addresses."""
    shutil.copytree(EXAMPLE, folder / "net")
    file = folder / "net" / "s1-runtime.json"
    tree = json.loads(file.read_text())
    tree["table_entries"] = [
        each for each in tree["table_entries"] if any(name in json.dumps(each) for name in entries)
    ]
    file.write_text(json.dumps(tree))
    return folder / "net" / "topology.json"


def command(*words: str) -> Result:
    return CliRunner().invoke(weft, words, standalone_mode=False)


def results_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return found


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Result]:
    folder = tmp_path_factory.mktemp("lossy")
    path = network(folder, ["10.0.1.1"])
    return (
        folder,
        path,
        command("run", str(path), "--set", PINGS, "--seed", "3", "--out", str(folder / "run")),
    )


def test_a_missing_entry_is_counted_by_switch_port_and_table(lossy: tuple[Path, Path, Result]) -> None:
    folder, _, ran = lossy
    assert ran.return_value == 1, "no ping was answered"
    found = results_of(folder / "run")
    assert found["drops"] == {MISSED: 3}
    assert found["losses"] == [
        {
            "node": "s1",
            "port": 1,
            "reason": MISSED,
            "packets": 3,
            "table": "Route.routes",
            "action": "Route.drop",
            "outcome": "miss",
            "source": "forward.p4:55",
            "copies": False,
        }
    ]
    assert sum(each["packets"] for each in found["packet_conservation"]["dropped"].values()) == 3


def test_the_command_that_is_printed_shows_a_lost_packet(lossy: tuple[Path, Path, Result]) -> None:
    _, path, ran = lossy
    assert f"s1 port 1: 3 packets, {MISSED}" in ran.output
    (line,) = (line for line in ran.output.splitlines() if line.strip().startswith("weft trace"))
    words = shlex.split(line)[1:]
    assert words[1] == str(path)
    assert words[-2:] == ["--set", "seed=3"]
    shown = command(*words)
    assert shown.exception is None
    assert "dropped (program_ingress)" in shown.output
    assert "forward.p4:55" in shown.output


def test_reasons_of_weft_s_own_program_have_a_command_too(tmp_path: Path) -> None:
    """Switches answer so many expired packets and drop the others, which alone are lost."""
    scenario = tmp_path / "s.yaml"
    fabric = "clock: virtual\nfabric: {planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 2}\n"
    routes = "- {traceroute: [h0->h3], probes: 10, timeout: 1ms}\n" * 12
    scenario.write_text(f"{fabric}traffic:\n{routes}")
    ran = command("run", str(scenario), "--out", str(tmp_path / "run"))
    assert ran.return_value == 0
    found = results_of(tmp_path / "run")
    lost = sum(each["packets"] for each in found["losses"])
    dropped = sum(each["packets"] for each in found["packet_conservation"]["dropped"].values())
    assert found["drops"] == {"ttl_expired": lost}
    assert lost == dropped > 0
    line = next(line for line in ran.output.splitlines() if line.strip().startswith("weft trace"))
    shown = command(*shlex.split(line)[1:])
    assert shown.exception is None
    assert "dropped (program_ingress)" in shown.output


def test_pages_do_not_say_that_all_is_well(lossy: tuple[Path, Path, Result]) -> None:
    folder, path, _ = lossy
    good = command("run", str(EXAMPLE / "topology.json"), "--set", PINGS, "--out", str(folder / "good"))
    assert good.exception is None
    assert "losses" not in results_of(folder / "good")
    pages = {}
    for name in ("run", "good"):
        page = folder / f"{name}.html"
        assert command("report", str(folder / name), "-o", str(page)).exception is None
        pages[name] = page.read_text(encoding="utf-8")
    assert "all checks passed" not in pages["run"]
    assert "3 packets lost in switches" in pages["run"]
    assert "weft trace SCENARIO --switch s1 --port 1 --when drop" in pages["run"]
    assert "all checks passed" in pages["good"]
    both = folder / "both.html"
    assert command("compare", str(folder / "run"), str(folder / "good"), "-o", str(both)).exception is None
    assert "all checks passed" not in both.read_text(encoding="utf-8")
    assert str(path) not in (folder / "run" / "results.json").read_text(), "a run's files are the same anywhere"


def test_what_nobody_compared_with_anything_has_passed_no_check(tmp_path: Path) -> None:
    incast = "traffic=[{incast: h1, bytes_per_sender: 16KiB}]"
    ran = command("run", str(EXAMPLE / "topology.json"), "--set", incast, "--out", str(tmp_path / "run"))
    assert ran.exception is None
    page = tmp_path / "page.html"
    assert command("report", str(tmp_path / "run"), "-o", str(page)).exception is None
    text = page.read_text(encoding="utf-8")
    assert "nothing was checked" in text
    assert "checks passed" not in text


def test_an_item_that_fails_leaves_the_results_of_those_before_it(tmp_path: Path) -> None:
    path = network(tmp_path, ["10.0.1.1", "10.0.2.0"])
    # h2 is asked for by h1 on its own link, where nobody answers.
    tree = json.loads(path.read_text())
    tree["hosts"]["h1"]["commands"] = ["ip route add default via 10.0.1.254"]
    path.write_text(json.dumps(tree))
    incast = "{incast: h1, bytes_per_sender: 16KiB}"
    tcp = "{tcp: [{flow: h1->h2, size: 10KB}]}"
    out = tmp_path / "run"
    ran = command("run", str(path), "--set", f"traffic=[{incast}, {tcp}, {incast}]", "--out", str(out))
    found = results_of(out)
    assert found["ok"] is False
    assert len(found["flows"]) == 1
    (failure,) = found["failures"]
    assert (failure["item"], failure["kind"]) == (1, "tcp")
    assert isinstance(ran.exception, CheckFailedError)
    assert failure["error"] == str(ran.exception)
    page = tmp_path / "page.html"
    assert command("report", str(out), "-o", str(page)).exception is None
    assert "traffic[1] (tcp) failed" in page.read_text(encoding="utf-8")
    assert command("compare", str(out), str(out), "-o", str(page)).exception is None
    assert "a check failed" in page.read_text(encoding="utf-8")
