"""`weft shims`: which files it writes, and which it leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.refusals import refused
from weft.cli import weft
from weft.errors import BadInputError
from weft.shims.writing import MARK, MODULES, PROGRAMS, environment_line, write_shims

LAUNCHERS = {"p4c", "p4c-bm2-ss", "simple_switch_grpc", "simple_switch_CLI", "python3", "python"}


def test_launchers_can_be_run_and_written_again(tmp_path: Path) -> None:
    folder = tmp_path / "my tools"
    first = write_shims(folder)
    assert {path.name for path in (folder / PROGRAMS).iterdir()} == LAUNCHERS
    assert all(os.access(folder / PROGRAMS / name, os.X_OK) for name in LAUNCHERS)
    assert all(MARK in path.read_text(encoding="utf-8") for path in first)
    assert write_shims(folder) == first
    done = subprocess.run(
        [folder / PROGRAMS / "simple_switch_grpc", "--json-version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("2.")


def test_the_line_puts_them_first_on_the_path(tmp_path: Path) -> None:
    folder = tmp_path / "it's here"
    result = CliRunner().invoke(weft, ["shims", str(folder)])
    assert result.exit_code == 0, result.output
    assert result.stdout == environment_line(folder) + "\n"
    line = f'{result.stdout.strip()}; command -v p4c; echo "$P4_EXTRA_SUDO_OPTS"'
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout == f"{folder}/{PROGRAMS}/p4c\nenv\n"


def test_files_of_others_stay(tmp_path: Path) -> None:
    other = tmp_path / PROGRAMS / "p4c"
    other.parent.mkdir()
    other.write_text("p4lang's", encoding="utf-8")
    with refused(BadInputError, place="p4c", valid="another DIR"):
        write_shims(tmp_path)
    assert other.read_text(encoding="utf-8") == "p4lang's"
    assert not (tmp_path / MODULES).exists(), "nothing is written before all files are known to be free"


@pytest.mark.parametrize("name", [PROGRAMS, f"{PROGRAMS}/p4c"])
def test_links_are_not_followed(name: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    link = tmp_path / "tools" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    with pytest.raises(BadInputError, match="is there already"):
        write_shims(tmp_path / "tools")
    assert not list(target.iterdir())


@pytest.mark.parametrize("name", ["a:b", "a\nb"])
def test_a_folder_that_path_cannot_hold_is_refused(name: str, tmp_path: Path) -> None:
    with refused(BadInputError, valid="a folder without : in its path"):
        write_shims(tmp_path / name)


CLIENT = """
from google.rpc import code_pb2, status_pb2
from p4.config.v1 import p4info_pb2, p4types_pb2
from p4.tmp import p4config_pb2
from p4.v1 import p4data_pb2, p4runtime_pb2, p4runtime_pb2_grpc
import p4.v1.p4runtime_pb2 as again
assert again is p4runtime_pb2
sent = p4config_pb2.P4DeviceConfig(reassign=True, device_data=b"{}")
sent.extras.kv["a"] = "b"
print(sent.SerializeToString().hex(), p4runtime_pb2.WriteRequest(device_id=1).device_id, code_pb2.OK)
"""


def test_controllers_find_their_modules(tmp_path: Path) -> None:
    write_shims(tmp_path)
    done = subprocess.run(
        [tmp_path / PROGRAMS / "python3", "-c", CLIENT], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout == "080112080a060a016112016" + "21a027b7d 1 0\n"


def test_another_python_finds_pis_module_alone(tmp_path: Path) -> None:
    write_shims(tmp_path)
    # Without finsy, as in the tutorials' own environment, a package p4 elsewhere on the path is found, too.
    own = tmp_path / "own" / "p4" / "v1"
    own.mkdir(parents=True)
    (own / "__init__.py").write_text("here = True\n", encoding="utf-8")
    code = (
        "import importlib.util as u; u.find_spec = lambda name: None; import p4.v1, p4.tmp.p4config_pb2 as found; "
        "print(p4.v1.here, found.P4DeviceConfig().reassign)"
    )
    path = os.pathsep.join(map(str, (tmp_path / MODULES, tmp_path / "own")))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": path}
    )
    assert done.stdout == "True False\n"
