"""`weft lab … --web` as its user meets it: a browser beside the prompt, traffic, a link taken down, the end."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from devtools import Page
from weft.clocks.real import lab_state
from weft.paths import ROOT
from weft.system.namespaces import network_namespace, processes_in

pytestmark = [pytest.mark.mininet, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

# Two hosts send 8 Mb/s each to h0, whose link has 10 Mb/s.
SCENARIO = """
fabric: {planes: 1, leaves: 2, spines: 2, hosts_per_leaf: 4, host_rate: 10Mb/s, fabric_rate: 10Mb/s,
         queue_capacity: 64KiB}
dilation: 1
"""
SENDERS = [
    *(f'py h0.popen("iperf3 -s -p {port}", stdout=-3) and None' for port in (5201, 5202)),
    *(
        f'py {host}.popen(["sh", "-c", "until iperf3 -c 10.0.0.1 -p {port} -u -b 8M -l 1000 -t 60; do :; done"], '
        "stdout=-3, stderr=-3) and None"
        for host, port in (("h4", 5201), ("h5", 5202))
    ),
]
TO_H0 = 'lines.find((line) => facts.links[line.links[0]].name === "h0<->p0l0").drawn'
PICTURE = ROOT / "docs/pictures/live-page.png"


@contextlib.contextmanager
def lab(scenario: Path, *options: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Start `weft lab`; gives the process and the page's address. Its end is checked."""
    running = subprocess.Popen(
        [sys.executable, "-m", "weft", "lab", str(scenario), "--web", "0", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert running.stdin is not None
    assert running.stdout is not None
    said: list[str] = []
    with running:
        for line in running.stdout:
            said.append(line)
            if line.startswith("live page at "):
                break
        else:
            pytest.fail("".join(said))
        state = lab_state.load()
        assert state is not None
        namespaces = [network_namespace(host.pid) for host in state.hosts.values()]
        try:
            yield running, said[-1].split()[-1]
        finally:
            rest = leave(running)
        assert running.returncode == 0, "".join(said) + rest
        assert processes_in([namespace for namespace in namespaces if namespace is not None]) == []


def leave(running: "subprocess.Popen[str]") -> str:
    """Leave the prompt, if that has not been done; return what the lab has said since."""
    return "" if running.poll() is not None else running.communicate("exit\n", timeout=60)[0]


def ask(running: "subprocess.Popen[str]", *lines: str) -> None:
    assert running.stdin is not None
    running.stdin.write("".join(f"{line}\n" for line in lines))
    running.stdin.flush()


def test_congestion_a_failure_and_entries_are_seen_in_the_browser(tmp_path: Path) -> None:
    scenario = tmp_path / "congestion.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    with lab(scenario) as (running, url), Page(url, tmp_path, 1200, 1560) as page:
        page.wait_for('at("status").textContent === "live" && state.number > 1')
        idle = page.value(f'{TO_H0}.getAttribute("stroke")')
        ask(running, *SENDERS)
        page.wait_for(f'parseInt({TO_H0}.getAttribute("stroke").slice(1, 3), 16) > 190')  # from grey to red
        assert page.value(f'{TO_H0}.getAttribute("stroke")') != idle
        page.wait_for('[...at("events").tBodies[0].rows].some((row) => /^drops begin$/.test(row.cells[1].textContent))')
        page.wait_for("Object.values(state.ports).some((port) => port[QUEUE] > 30000)")
        assert page.value('at("busiest").tBodies[0].rows[0].cells[0].textContent').startswith("p0")
        page.value('at("contents").value = "tables/ipv4_lpm"; at("contents").dispatchEvent(new Event("change"))')
        page.wait_for('[...at("rows").tBodies[0].rows].some((row) => row.cells[0].textContent === "10.0.0.1/32")')
        # The charts have a minute before their picture is taken; a test has not.
        if os.environ.get("WEFT_RENEW_PAGES"):
            page.wait_for("state.number > 45")
            page.picture(PICTURE)
        subprocess.run(["ip", "link", "set", "dev", "p0l1-eth6", "down"], check=True)
        page.wait_for('[...at("events").tBodies[0].rows].some((row) => row.cells[1].textContent === "link down")')
        page.wait_for('lines.some((line) => line.drawn.getAttribute("stroke-dasharray"))')
        assert page.console == []
        # The lab ends with the page open, and the page says so.
        leave(running)
        page.wait_for('at("status").textContent.startsWith("the lab has ended")')


def fetched(url: str, path: str, **query: str) -> dict[str, Any]:
    base, _, token = url.partition("/?")
    with urlopen(f"{base}/{path}?{token}&{urlencode(query)}", timeout=60) as answer:
        return dict(json.load(answer))


def test_a_network_of_somebody_elses_program_is_shown_too(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ROOT / "examples/own_network", tmp_path / "network"))
    with lab(folder / "topology.json") as (running, url):
        ask(running, 'py h1.popen("ping -i 0.05 10.0.2.2", stdout=-3) and None')
        # The controller has left the switches to others: the page reads them by connections of its own.
        names = fetched(url, "contents", switch="s1")
        assert names["tables"] == ["routes"]
        found = fetched(url, "rows", switch="s1", kind="tables", name="routes")
        assert [row[0] for row in found["rows"]] == ["10.0.1.1/32", "10.0.2.0/24"]
        (counter,) = names["counters"]
        while not fetched(url, "rows", switch="s2", kind="counters", name=counter)["rows"]:
            """Until the first ping has come that far."""
        while not fetched(url, "state")["links"]:
            """Until a sample has seen the load."""
        assert fetched(url, "state")["down"] == []
        subprocess.run(["ip", "link", "set", "dev", "s1-eth3", "down"], check=True)
        while not (state := fetched(url, "state"))["down"]:
            """Until the switch has noticed, and a sample after it."""
        assert [row[1:3] for row in state["events"]] == [["link down", "s1<->s2"]]
