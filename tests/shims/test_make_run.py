"""Exercises run by their own `make run`, which finds Weft's tools by the names of p4lang's."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tutorial_clone import CLONE, NEEDS_CLONE

from weft.paths import ROOT
from weft.shims.writing import MODULES, PROGRAMS, write_shims

EXERCISE = Path(__file__).parent / "exercise"
DROPIN = ROOT / "tests" / "dropin"
# Looks programs up without the PATH that it is given, as sudo does with secure_path; a test's user is root.
SUDO = '#!/bin/sh\nwhile case "$1" in *=*) true ;; *) false ;; esac; do export "$1"; shift; done\nexec "$@"\n'

pytestmark = [
    pytest.mark.mininet,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(shutil.which("mnexec") is None, reason="needs Mininet"),
    pytest.mark.skipif(shutil.which("make") is None, reason="needs make"),
]


def make_run(folder: Path, tmp_path: Path, typed: str, **more: str) -> str:
    """Return what `make run` says in a folder, with lines typed at Mininet's prompt."""
    tools = tmp_path / "tools"
    write_shims(tools)
    sudo = tmp_path / "sudo"
    sudo.mkdir()
    (sudo / "sudo").write_text(SUDO)
    (sudo / "sudo").chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | more
    environment["PATH"] = os.pathsep.join([str(tools / PROGRAMS), str(sudo), os.environ["PATH"]])
    environment["P4_EXTRA_SUDO_OPTS"] = "env"
    done = subprocess.run(
        ["make", "run"],
        cwd=folder,
        input=typed,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # where Mininet writes
        text=True,
        check=False,
        env=environment,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_an_exercise_finds_all_its_tools(tmp_path: Path) -> None:
    folder = tmp_path / "exercise"
    shutil.copytree(EXERCISE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(DROPIN / "programs" / "basic_forward.p4", folder)
    said = make_run(folder, tmp_path, "h1 ping -c 3 -i 0.2 -W 5 h2\nexit\n", PYTHONPATH=str(DROPIN))
    assert "Entry has been added with handle" in said
    assert "Error: unknown command 'no_command'" in said, "the next command runs all the same"
    assert "RuntimeCmd: 3\n" in said, "routes of the controller, of simple_switch_CLI, and of the controller again"
    assert " 3 received" in said
    assert "MyIngress.ipv4_lpm" in (folder / "logs" / "s1.log").read_text()


@NEEDS_CLONE
@pytest.mark.slow
def test_the_tutorials_basic_exercise_runs(tmp_path: Path) -> None:
    exercises = tmp_path / "exercises"
    shutil.copytree(CLONE / "basic", exercises / "basic")
    shutil.copytree(CLONE.parent / "utils", tmp_path / "utils")
    shutil.copy(CLONE / "basic" / "solution" / "basic.p4", exercises / "basic" / "basic.p4")
    typed = "h1 ping -c 2 -W 5 h4\nsh echo table_num_entries ipv4_lpm | simple_switch_CLI --thrift-port 9090\nexit\n"
    said = make_run(exercises / "basic", tmp_path, typed)
    assert " 2 received" in said
    assert "ttl=61" in said
    assert "RuntimeCmd: 4\n" in said


@NEEDS_CLONE
@pytest.mark.slow
def test_the_tutorials_controller_runs(tmp_path: Path) -> None:
    folder = tmp_path / "exercises" / "p4runtime"
    shutil.copytree(CLONE / "p4runtime", folder)
    shutil.copytree(CLONE.parent / "utils", tmp_path / "utils")
    shutil.copy(folder / "solution" / "mycontroller.py", folder)
    log = folder / "controller.log"
    typed = (
        f"sh timeout -s INT 60 python3 -u ./mycontroller.py > {log} 2>&1 &\n"
        f"sh timeout 60 sh -c 'until grep -q Reading {log}; do sleep 0.1; done'\n"
        "h1 ping -c 2 -W 5 h2\nexit\n"
    )
    said = make_run(folder, tmp_path, typed)
    assert " 2 received" in said, log.read_text()


def test_the_modules_are_where_the_launchers_look(tmp_path: Path) -> None:
    write_shims(tmp_path)
    done = subprocess.run(
        [tmp_path / PROGRAMS / "python3", "-c", "import p4.tmp; print(p4.tmp.__file__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()).is_relative_to(tmp_path / MODULES)
