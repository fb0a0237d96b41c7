"""The reference compiler, which compiles a program once for all processes and tests of a run."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Compiled:
    """What p4c-bm2-ss made of a program: files, of which those that it did not make are missing, and what it said."""

    status: int
    stderr: str
    json: Path
    p4info: Path


class P4c:
    """Compiles programs with p4c-bm2-ss into a folder that the processes of a run share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def supported(self, program: Path) -> Compiled:
        """Compile a program that is right, without P4Info. Skips the test where p4c does not support the program."""
        done = self.compile(program, "--Wdisable", with_p4info=False)
        if "--Werror=unsupported" in done.stderr:
            pytest.skip(done.stderr.splitlines()[0])
        assert done.status == 0, done.stderr
        return done

    def compile(self, program: Path, *options: str, with_p4info: bool = True) -> Compiled:
        """Compile a program that does not change while the tests run. Skips the test where there is no p4c-bm2-ss."""
        compiler = shutil.which("p4c-bm2-ss")
        if compiler is None:
            pytest.skip("p4c-bm2-ss is not on PATH")
        what = "\0".join([str(program.resolve()), *options, str(with_p4info)])
        folder = self._folder / hashlib.sha256(what.encode()).hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        json, p4info, status = (folder / each for each in ("program.json", "p4info.txtpb", "status"))
        command = [compiler, "--std", "p4-16", *options, "-o", str(json)]
        if with_p4info:
            command += ["--p4runtime-files", str(p4info)]
        with (folder / "stderr").open("a+", encoding="utf-8") as stderr:
            fcntl.flock(stderr, fcntl.LOCK_EX)
            if not status.exists():
                done = subprocess.run(
                    [*command, str(program)],
                    stderr=stderr,
                    check=False,
                    timeout=120,
                    stdout=subprocess.DEVNULL,
                )
                status.write_text(str(done.returncode), encoding="utf-8")
            stderr.seek(0)
            return Compiled(int(status.read_text(encoding="utf-8")), stderr.read(), json, p4info)

    def compiled(self, program: Path) -> Compiled:
        """Compile a program that is right."""
        done = self.compile(program)
        assert done.status == 0, done.stderr
        return done


@pytest.fixture(scope="session")
def p4c(tmp_path_factory: pytest.TempPathFactory) -> P4c:
    """Return the reference compiler of this run, for tests marked `reference`."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # of all workers
    return P4c(base / "p4c")
