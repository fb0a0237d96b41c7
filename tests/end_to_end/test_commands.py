"""The commands as a user types them: a lab with the controller beside it, exit codes, messages."""

import json
import os
import re
import subprocess
import sys

import pytest
from scapy.utils import rdpcap

from weft.paths import FABRIC_P4, ROOT, SHELL_PYTHON

SMALL = "fabric: {planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 1}\n"


def weft(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "weft", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_a_lab_offers_mininets_prompt_and_the_controller_beside_it(tmp_path):
    scenario = tmp_path / "lab.yaml"
    scenario.write_text(SMALL + "tenants: {blue: {slots: 512}}\n", encoding="utf-8")
    command = f"{sys.executable} -m weft controller"
    script = "\n".join(
        [
            "pingall",
            f"sh {command} routes p0l0 --json > {tmp_path}/routes.json",
            f"sh {command} health > {tmp_path}/health.txt; echo $? >> {tmp_path}/health.txt",
            f"sh {command} counters p0l0 --json > {tmp_path}/counters.json",
            f"sh {command} jobs --json > {tmp_path}/jobs.json",
            f"sh {command} tenants --json > {tmp_path}/tenants.json",
            f"sh {command} routes p0l9 2> {tmp_path}/unknown.txt; echo $? >> {tmp_path}/unknown.txt",
            "exit\n",
        ]
    )
    done = weft("lab", scenario, input=script, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "0% dropped (2/2 received)" in done.stdout + done.stderr
    assert json.loads((tmp_path / "routes.json").read_text())
    assert (tmp_path / "health.txt").read_text().endswith("\n0\n")
    assert json.loads((tmp_path / "counters.json").read_text())
    assert json.loads((tmp_path / "jobs.json").read_text()) == []
    (tenant,) = json.loads((tmp_path / "tenants.json").read_text())
    assert (tenant["tenant"], tenant["slots"], tenant["slots_used"]) == ("blue", 512, 0)
    unknown = (tmp_path / "unknown.txt").read_text()
    assert "p0l9" in unknown
    assert "p0l0" in unknown
    assert not unknown.endswith("\n0\n")


@pytest.mark.skipif(not SHELL_PYTHON.exists(), reason="p4runtime-shell is not installed (.venv-shell)")
def test_p4runtime_shell_reads_a_switch_of_the_lab(tmp_path):
    scenario = tmp_path / "lab.yaml"
    scenario.write_text(SMALL, encoding="utf-8")
    (tmp_path / "commands").write_text("tables\nexit\n", encoding="utf-8")
    shell = f"{sys.executable} -m weft shell"
    script = (
        f"sh {shell} p0l0 < {tmp_path}/commands > {tmp_path}/tables.txt 2>&1\n"
        f"sh {shell} p9 2> {tmp_path}/unknown.txt; echo $? >> {tmp_path}/unknown.txt\nexit\n"
    )
    done = weft("lab", scenario, input=script, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "FabricIngress.forwarding.ipv4_lpm" in (tmp_path / "tables.txt").read_text()
    assert "unknown switch 'p9'" in (tmp_path / "unknown.txt").read_text()
    assert (tmp_path / "unknown.txt").read_text().endswith("\n3\n")


def test_why_a_switch_of_the_lab_drops_a_packet_is_reported_with_the_line_of_p4(tmp_path):
    scenario = tmp_path / "lab.yaml"
    scenario.write_text(SMALL, encoding="utf-8")
    command = f"{sys.executable} -m weft trace"
    script = "\n".join(
        [
            'py h0.popen("ping -i 0.2 -c 100 -R 10.0.1.1", stdout=-3) and None',
            f"sh {command} p0l0 --port 1 > {tmp_path}/trace.txt",
            f"sh {command} p0l9 2> {tmp_path}/unknown.txt; echo $? >> {tmp_path}/unknown.txt",
            "exit\n",
        ]
    )
    done = weft("lab", scenario, input=script, timeout=120)
    assert done.returncode == 0, done.stderr
    trace = (tmp_path / "trace.txt").read_text()
    assert trace.startswith("packet 1: in by port 1, 138 bytes")
    assert "ipv4.ihl != 5: true" in trace
    assert re.search(r"drop_reason = \d+   ← forwarding.p4:\d+: drop_reason = DropReason.IPV4_OPTIONS", trace)
    assert re.search(r"dropped \(program_ingress\): .* set by drops.p4:\d+: mark_to_drop", trace)
    unknown = (tmp_path / "unknown.txt").read_text()
    assert "unknown switch 'p0l9'" in unknown
    assert unknown.endswith("\n3\n")


def test_a_run_captures_nics_and_the_ports_of_switches(tmp_path):
    scenario = tmp_path / "run.yaml"
    traffic = "traffic: [{collective: allreduce, algorithms: [ring], sizes: [4096], dtype: int32}]\n"
    scenario.write_text(SMALL + "links: internal\n" + traffic, encoding="utf-8")
    places = ["--out", tmp_path / "out", "--pcap", tmp_path / "pcap"]
    done = weft("run", scenario, *places, "--pcap-switch", "p0l0", timeout=120)
    assert done.returncode == 0, done.stderr
    frames = {path.name: len(rdpcap(str(path))) for path in (tmp_path / "pcap").iterdir()}
    assert set(frames) == {"h0-plane0.pcap", "h1-plane0.pcap", "p0l0-eth1.pcap", "p0l0-eth2.pcap"}
    assert all(frames.values())
    # what crosses the host's link is there on both of its ends
    assert frames["p0l0-eth1.pcap"] >= frames["h0-plane0.pcap"]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--pcap-switch", "p0l0"], 2, "--pcap-switch needs --pcap DIR"),
        (["--pcap", "pcap", "--pcap-switch", "p0l9"], 3, "unknown switch 'p0l9'"),
        (["--pcap", "pcap", "--pcap-switch", "all", "--target", "bmv2"], 4, "does not capture the ports"),
    ],
)
def test_captures_that_are_not_possible_are_refused(tmp_path, options, code, message):
    (tmp_path / "run.yaml").write_text(SMALL + "dilation: 1\n", encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = weft("run", "run.yaml", *options, cwd=tmp_path, env=environment, timeout=60)
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr


def test_collective_prints_nccl_tests_columns():
    done = weft(
        *[
            "collective",
            "allreduce",
            "--planes",
            "1",
            "--leaves",
            "1",
            "--spines",
            "1",
            "--hosts-per-leaf",
            "2",
            "--sizes",
            "1K:4K:4",
        ],
        *["--algorithm", "ring", "--algorithm", "in-network", "--dtype", "int32"],
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    for word in ("size", "count", "type", "redop", "time", "algbw", "busbw", "#wrong"):
        assert word in done.stdout
    rows = [line.split() for line in done.stdout.splitlines() if line.split()[:1] in (["ring"], ["in-network"])]
    assert [(row[0], row[1]) for row in rows] == [
        ("ring", "1024"), ("in-network", "1024"), ("ring", "4096"), ("in-network", "4096"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fabrik: {}\n", ["scenario.yaml:1", "did you mean 'fabric'"]),
        ("p4: none.p4\n", ["none.p4", "no such P4 program"]),
        ("fabric: [1\n", ["is not YAML"]),
    ],
)
def test_bad_scenarios_exit_3(tmp_path, text, words):
    path = tmp_path / "scenario.yaml"
    path.write_text(text, encoding="utf-8")
    done = weft("run", path)
    assert done.returncode == 3
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_program_is_reported_by_place(tmp_path):
    program = tmp_path / "broken.p4"
    program.write_text(FABRIC_P4.read_text().replace("drops.apply(standard_metadata", "drops.apply(standard_metadatum"))
    (tmp_path / "include").symlink_to(FABRIC_P4.parent / "include")
    (tmp_path / "scenario.yaml").write_text(SMALL + "p4: broken.p4\n", encoding="utf-8")
    done = weft("run", tmp_path / "scenario.yaml")
    line = next(
        number for number, text in enumerate(program.read_text().splitlines(), 1) if "standard_metadatum" in text
    )
    assert done.returncode == 3
    assert f"broken.p4:{line}:" in done.stderr
    assert "standard_metadatum" in done.stderr


def test_usage_errors_exit_2(tmp_path):
    assert weft("run").returncode == 2
    assert weft("rnu").returncode == 2
    assert weft("run", tmp_path / "none.yaml").returncode == 2
    assert weft("collective", "allreduce", "--sizes", "4K:1K:2").returncode == 2


def test_bmv2_that_is_not_installed_exits_4_and_names_what_to_install(tmp_path):
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SMALL + "dilation: 1\n", encoding="utf-8")
    done = weft("run", scenario, "--target", "bmv2", env=os.environ | {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    assert done.returncode == 4
    assert "simple_switch_grpc" in done.stderr
    assert "p4lang-bmv2" in done.stderr
