"""Programs open /dev/infiniband/rdma_cm by the preloaded library, and the distribution's librdmacm runs over it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.verbs.channel_user import USES
from tests.verbs.cm_ends import GUIDS
from tests.verbs.ucma_bytes import PS_TCP, PS_UDP

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
LONGEST_S = 60


def compiled(source: Path, target: Path, *options: str) -> Path:
    """Compile a library. Skips the test where the compiler or a header is missing."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    done = subprocess.run(
        [compiler, "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", *options, str(source), "-o", str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    if re.search("infiniband/.*No such file or directory", done.stderr):
        pytest.skip(done.stderr.splitlines()[0])
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def preload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the library, compiled without C++'s."""
    options = ("-x", "c++", "-std=c++20", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", f"-I{ROOT}/engine")
    options += (f"-I{ROOT}/verbs",)
    target = tmp_path_factory.mktemp("preload") / "libweft-preload.so"
    return compiled(ROOT / "verbs/preload/cm_channel.cpp", target, *options)


@pytest.fixture(scope="module")
def fake_verbs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(HERE / "fake_verbs.c", tmp_path_factory.mktemp("verbs") / "fake_verbs.so")


class Lab:
    """A running pair of hosts."""

    def __init__(self, folder: Path, process: subprocess.Popen[str]) -> None:
        self.folder, self.process = folder, process

    def environment(self, host: str, *libraries: Path) -> dict[str, str]:
        return os.environ | {
            "LD_PRELOAD": ":".join(map(str, libraries)),
            "WEFT_VERBS_SOCKET": str(self.folder / f"{host}.sock"),
            "SYSFS_PATH": str(self.folder / "sysfs"),
            "FAKE_NODE_GUID": f"{GUIDS[host]:016x}",
            "FAKE_VERBS_LOG": str(self.folder / f"{host}.log"),
            "PYTHONPATH": str(ROOT),
        }

    def listens(self, host: str, service_id: int) -> bool:
        """Return whether a program of a host listens to a service."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{host} {service_id}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline() == "True\n"

    def end(self) -> dict[str, Any]:
        """End it, and return what it has left."""
        said, _ = self.process.communicate(timeout=LONGEST_S)
        assert self.process.returncode == 0
        left: dict[str, Any] = json.loads(said.splitlines()[-1])
        return left


@contextmanager
def two_hosts(folder: Path, *options: str) -> Iterator[Lab]:
    folder /= "longer-than-the-name-of-a-socket-may-be-" * 3
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, str(HERE / "two_hosts.py"), str(folder), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "serving\n"
        yield Lab(folder, process)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("use", [name for name in USES if name != "says_when_the_server_has_gone"])
def test_a_program_uses_the_device(use: str, preload: Path, tmp_path: Path) -> None:
    with two_hosts(tmp_path) as lab:
        command = [sys.executable, str(HERE / "channel_user.py"), use]
        done = subprocess.run(
            command,
            env=lab.environment("a", preload),
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        left = lab.end()
    assert {name: (host["channels"], host["ids"]) for name, host in left.items()} == {"a": (0, 0), "b": (0, 0)}


def test_a_program_hears_that_the_server_has_gone(preload: Path, tmp_path: Path) -> None:
    with two_hosts(tmp_path) as lab:
        program = subprocess.Popen(
            [sys.executable, str(HERE / "channel_user.py"), "says_when_the_server_has_gone"],
            env=lab.environment("a", preload),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert program.stdout is not None
        assert program.stdout.readline() == "kill\n"
        lab.process.kill()
        lab.process.wait()
        _, said = program.communicate("\n", timeout=LONGEST_S)
        assert program.returncode == 0, said


def test_without_a_server_the_device_is_what_the_machine_has(preload: Path, tmp_path: Path) -> None:
    """Nothing stands in the way of other files either."""
    script = (
        "import os; open('x', 'w').write('y'); assert open('x').read() == 'y'; os.open('/dev/infiniband/rdma_cm', 2)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "WEFT_VERBS_SOCKET"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment | {"LD_PRELOAD": str(preload)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    if Path("/dev/infiniband/rdma_cm").exists():
        assert done.returncode == 0, done.stderr
    else:
        assert "No such file or directory: '/dev/infiniband/rdma_cm'" in done.stderr


def queue_pairs(log: Path) -> list[dict[str, str]]:
    """Return what was done to queue pairs, in order."""
    lines = log.read_text(encoding="utf-8").splitlines()
    return [dict(part.split("=") for part in line.split()) for line in lines]


PROGRAMS = {
    "ucmatose": (["ucmatose", "-C", "0", "-c", "3"], ["ucmatose", "-C", "0", "-c", "3", "-s", "10.0.0.2"]),
    "ucmatose over IPv6": (["ucmatose", "-C", "0", "-b", "fd00::2"], ["ucmatose", "-C", "0", "-s", "fd00::2"]),
    "ucmatose that migrates": (["ucmatose", "-C", "0", "-m"], ["ucmatose", "-C", "0", "-m", "-s", "10.0.0.2"]),
    "udaddy": (["udaddy", "-C", "0", "-c", "2"], ["udaddy", "-C", "0", "-c", "2", "-s", "10.0.0.2"]),
}


@pytest.mark.parametrize("network", [(), ("--loss", "0.2", "--twice", "0.2")], ids=["ideal", "lossy"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_librdmacm_s_programs_connect(
    name: str, network: tuple[str, ...], preload: Path, fake_verbs: Path, tmp_path: Path
) -> None:
    """Unmodified ones; their queue pairs get each other's numbers."""
    server_command, client_command = PROGRAMS[name]
    service = PS_UDP << 16 | 7174 if name == "udaddy" else PS_TCP << 16 | 7471
    if shutil.which(server_command[0]) is None:
        pytest.skip(f"{server_command[0]} is not installed (Debian: rdmacm-utils)")
    with two_hosts(tmp_path, *network) as lab:
        server = subprocess.Popen(
            server_command,
            env=lab.environment("b", fake_verbs, preload),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            while not lab.listens("b", service):
                assert server.poll() is None, server.communicate()[0]
            done = subprocess.run(
                client_command,
                env=lab.environment("a", fake_verbs, preload),
                capture_output=True,
                text=True,
                timeout=LONGEST_S,
                check=False,
            )
            said, _ = server.communicate(timeout=LONGEST_S)
        finally:
            server.kill()
            server.wait()
        assert (done.returncode, server.returncode) == (0, 0), done.stdout + done.stderr + said
        assert "return status 0" in done.stdout
        left = lab.end()
    assert {host: (each["channels"], each["ids"]) for host, each in left.items()} == {"a": (0, 0), "b": (0, 0)}
    if name == "udaddy":
        return
    a, b = queue_pairs(lab.folder / "a.log"), queue_pairs(lab.folder / "b.log")
    for own, peer in ((a, b), (b, a)):
        ready = [each for each in own if each["state"] == "2"]
        assert {each["dest"] for each in ready} == {each["qp"] for each in peer}
        assert {each["rq_psn"] for each in ready} == {each["sq_psn"] for each in peer if each["state"] == "3"}
