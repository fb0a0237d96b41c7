"""Metrics of a lab: the text that Prometheus reads, what it says, and who may ask for it."""

from __future__ import annotations

import contextlib
import http.client
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from metrics.exposed import SUFFIXES, hosts_of, parsed

from tests.refusals import refused
from weft.cli import run_guarded, weft
from weft.errors import EnvironmentLacksError, WeftError
from weft.metrics import Family, MetricsServer, families_of, rendered
from weft.metrics.hosts import HostFamilies
from weft.metrics.of_lab import LabMetrics
from weft.metrics.recent import Recent
from weft.paths import ROOT
from weft.run.fabric import Fabric
from weft.topologies import leaf_spine
from weft.traffic.host_metrics import metrics_of

RULES = ROOT / "docs/prometheus/weft-rules.yaml"


@given(st.lists(st.tuples(st.text(), st.floats(allow_nan=False)), unique_by=lambda each: each[0]))
def test_any_label_and_value_are_read_back(samples: list[tuple[str, float]]) -> None:
    # Prometheus reads lines that end in \n; what else Python calls the end of a line is a character.
    family = Family("weft_some_bytes", "gauge", "Of a \\ and a\nsecond line.")
    for label, value in samples:
        family.add(value, name=label)
    found = {dict(labels)["name"]: value for (_, labels), value in parsed(rendered([family])).items()}
    assert found == dict(samples)


@pytest.fixture(scope="module")
def incast() -> Iterator[Fabric]:
    fabric = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=3, queue_capacity_bytes=64 * 1024)
    with Fabric(fabric, clock="virtual", pfc={"classes": [3]}, buffer={"capacity": "512KiB"}) as running:
        running.incast("h0", 256 * 1024)
        yield running


def test_the_metrics_are_the_counters(incast: Fabric) -> None:
    stats, counters = incast.lab.switch_stats(), incast.lab.controller.read_counters()
    assert stats is not None
    text = rendered(families_of(incast.topology, 100.0, stats, counters))
    found = parsed(text)

    def value(name: str, **labels: object) -> float:
        return found[name, frozenset((key.rstrip("_"), str(each)) for key, each in labels.items())]

    assert value("weft_dilation_ratio") == 100
    assert value("weft_emulated_seconds_total") == stats["now_ps"] / 1e12 > 0
    port = stats["switches"]["p0l0"]["ports"]["1"]
    here = {"switch": "p0l0", "port": 1, "peer": "h0"}
    assert value("weft_port_transmitted_bytes_total", **here) == port["transmit"]["transmitted"]["bytes"] > 5 * 2**18
    assert value("weft_port_queue_depth_max_bytes", **here) == port["transmit"]["max_queue_depth_bytes"] > 0
    assert value("weft_port_queue_depth_bytes", **here) == 0
    assert value("weft_port_link_capacity_bytes_per_second", **here) == 10e9 / 8 / 100
    assert value("weft_port_dropped_packets_total", **here, reason="queue_full") == 0
    marked = counters["p0l0"].ports[1].ecn_marked.packets
    assert value("weft_port_ecn_marked_packets_total", **here) == marked > 0
    assert value("weft_switch_buffer_capacity_bytes", switch="p0l0") == 512 * 1024
    paused = {key: each for key, each in found.items() if key[0] == "weft_port_pause_frames_sent_total"}
    assert sum(paused.values()) > 0
    assert len({name for name, _ in found}) > 15


def test_the_page_lists_every_metric() -> None:
    families = families_of(leaf_spine(), 1.0, None, {})
    listed = set(re.findall(r"`(weft_[a-z_]+)`", (ROOT / "docs/metrics.md").read_text()))
    assert {each.name for each in families} <= listed
    sources = "".join(path.read_text() for path in (ROOT / "weft/metrics").glob("*.py"))
    assert listed == set(re.findall(r'"(weft_[a-z_]+)"', sources))


def test_every_metric_of_the_rules_is_exported(incast: Fabric) -> None:
    exported = {name for name, _ in parsed(rendered(LabMetrics(incast.lab, incast).families()))}
    planned = incast.lab.controller.planned_paths
    answers = {"h0": metrics_of(hosts_of(incast)["h0"])}
    of_hosts = HostFamilies(incast.topology, 1.0, planned, has_latencies=True).families(answers)
    exported |= {each.name + suffix for each in of_hosts for suffix in SUFFIXES[each.kind]}
    named = set(re.findall(r"\bweft_[a-z0-9_]+", RULES.read_text()))
    assert named
    assert named <= exported


def test_the_rules_are_valid_and_fire_when_they_should() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    for command in (
        ["check", "rules", str(RULES)],
        ["check", "config", str(RULES.with_name("prometheus.yaml"))],
        ["test", "rules", str(Path(__file__).with_name("rules_test.yaml"))],
    ):
        done = subprocess.run([promtool, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_finds_nothing_wrong_with_the_names(incast: Fabric) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run(
        [promtool, "check", "metrics"],
        input=rendered(LabMetrics(incast.lab).families()),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def ask(server: MetricsServer, path: str = "/metrics", method: str = "GET", **headers: str) -> tuple[int, str]:
    host, port = server.url.removeprefix("http://").partition("/")[0].split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_the_server_answers_on_loopback_and_reads_the_lab_at_most_once_a_second() -> None:
    reads: list[int] = []

    def read() -> str:
        reads.append(1)
        return "weft_x 1\n"

    with MetricsServer(0, Recent(read).value) as server:
        assert server.url.startswith("http://127.0.0.1:")
        first = ask(server)
        assert first == (200, "weft_x 1\n")
        assert {ask(server) for _ in range(5)} == {first}
        assert ask(server, "/")[0] == 404
        assert ask(server, method="POST")[0] == 501
        port = int(server.url.split(":")[2].partition("/")[0])
        with refused(EnvironmentLacksError, problem=f"127.0.0.1:{port}: Address already in use"):
            MetricsServer(port, read)
        # Who breaks off, or speaks no HTTP, disturbs no one else.
        with socket.create_connection(("127.0.0.1", port), timeout=10) as broken:
            broken.sendall(b"\x16\x03\x01 no HTTP\r\n\r\n")
        assert ask(server)[0] == 200
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:9464", 200),
        ("127.0.0.1", 200),
        ("[::1]:9464", 200),
        ("attacker.example:9464", 403),
        ("", 403),
    ],
)
def test_another_site_s_name_leads_to_nothing(host: str, status: int) -> None:
    """DNS rebinding would let its scripts read what a browser's machine measures."""
    with MetricsServer(0, lambda: "weft_x 1\n") as server:
        assert ask(server, Host=host)[0] == status


def test_who_never_ends_a_request_keeps_nobody_waiting() -> None:
    with MetricsServer(0, lambda: "weft_x 1\n", deadline_s=2) as server:
        port = int(server.url.split(":")[2].partition("/")[0])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as slow:
            slow.sendall(b"GET /metrics HTTP/1.0\r\nX-Slow: ")
            # The server hangs up although the request goes on: a timeout of this socket would fail the test.
            assert slow.recv(1) == b""
        assert ask(server) == (200, "weft_x 1\n")


def test_who_does_not_take_the_answer_keeps_nobody_waiting() -> None:
    # More than sockets hold of an answer that nobody reads.
    with MetricsServer(0, lambda: "weft_x 1\n" * 2_000_000, deadline_s=2) as server:
        port = int(server.url.split(":")[2].partition("/")[0])
        slow = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(4)]
        for each in slow:
            each.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        assert ask(server, "/")[0] == 404
        for each in slow:
            each.close()


def test_a_scrape_waits_neither_for_who_asks_nothing_nor_for_who_takes_nothing() -> None:
    # Nobody's deadline comes within the test: seven of eight connections are held, and the eighth is served at once.
    with (
        contextlib.ExitStack() as clients,
        MetricsServer(0, lambda: "weft_x 1\n" * 2_000_000, deadline_s=600) as server,
    ):
        place = server.place
        slow = [clients.enter_context(socket.create_connection(place, timeout=10)) for _ in range(7)]
        for each in slow[:4]:
            each.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
            assert each.recv(1) == b"H", "its answer is under way, and larger than what sockets hold"
        assert [ask(server, "/")[0] for _ in range(20)] == [404] * 20
        status, text = ask(server)
        assert (status, len(text)) == (200, 18_000_000)


def test_a_lab_that_is_gone_is_unavailable() -> None:
    def read() -> str:
        raise WeftError("the switch daemon is gone")

    with MetricsServer(0, read) as server:
        assert ask(server) == (503, "the switch daemon is gone\n")


def test_a_virtual_run_has_no_metrics() -> None:
    runner = CliRunner()
    with runner.isolation() as (_, err, _output):
        arguments = ["run", str(ROOT / "labs/10-failures/scenario.yaml"), "--metrics"]
        code = run_guarded(lambda: weft.main(arguments, "weft", standalone_mode=False))
        assert code == 4
        assert "--metrics is for the real clock" in err.getvalue().decode()
