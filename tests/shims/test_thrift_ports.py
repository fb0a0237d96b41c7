"""A switch is found by its Thrift port as long as its process runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.refusals import refused
from weft.errors import BadInputError, EnvironmentLacksError
from weft.system.thrift_ports import Served, announced, find, folder, running_ports


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_STATE_FILE", str(tmp_path / "lab.json"))


def test_switches_are_found_as_long_as_they_run() -> None:
    first, second = Served("127.0.0.1:50051", 0), Served("127.0.0.1:50052", 1)
    with announced({9090: first, 9091: second}):
        assert (find(9090), find(9091)) == (first, second)
        with refused(EnvironmentLacksError, valid="9090, 9091"):
            find(9092)
    with refused(EnvironmentLacksError, valid="none; no switch runs"):
        find(9090)
    assert not list(folder().iterdir())


@pytest.mark.parametrize("port", [0, 65536, -1])
def test_a_port_out_of_range_is_refused(port: int) -> None:
    with refused(BadInputError, valid="1 to 65535"):
        find(port)


def test_a_switch_that_has_been_killed_is_not_found() -> None:
    with announced({9090: Served("127.0.0.1:50051", 0)}):
        path = folder() / "9090.json"
        tree = json.loads(path.read_text(encoding="utf-8"))
        tree["owner"]["start_ticks"] -= 1  # a process of this id that ended
        path.write_text(json.dumps(tree), encoding="utf-8")
        assert running_ports() == []
    assert path.exists(), "it is another process's"


@pytest.mark.parametrize("text", ["", "[]", "[" * 5000, '{"owner": 1, "address": "", "device_id": 0}', "{}"])
def test_files_of_others_are_no_switches(text: str) -> None:
    folder().mkdir()
    (folder() / "9090.json").write_text(text, encoding="utf-8")
    assert running_ports() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file away")
def test_another_users_file_is_not_believed() -> None:
    with announced({9090: Served("127.0.0.1:50051", 0)}):
        os.chown(folder() / "9090.json", 65534, 65534)
        assert running_ports() == []


def test_links_and_pipes_are_no_switches(tmp_path: Path) -> None:
    folder().mkdir()
    os.mkfifo(folder() / "9090.json")
    (tmp_path / "other").write_text("{}", encoding="utf-8")
    (folder() / "9091.json").symlink_to(tmp_path / "other")
    assert running_ports() == []


def test_a_folder_that_others_may_write_is_not_used() -> None:
    folder().mkdir()
    folder().chmod(0o777)
    with pytest.raises(EnvironmentLacksError, match="only they may write"), announced({9090: Served("x", 0)}):
        pass
