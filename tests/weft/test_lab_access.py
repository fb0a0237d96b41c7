"""Which users can reach a lab's switches."""

import os
import stat
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from tests.refusals import refused
from weft.clocks.real.access import LabAccess, owner
from weft.errors import EnvironmentLacksError
from weft.run.packet_logs import made
from weft.scenario.program import Program
from weft.switch.p4runtime.service import Server


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_server_on_a_socket_is_its_owners(tmp_path):
    address = f"unix:{tmp_path / 'p4runtime.sock'}"
    server = Server({}, address)
    server.start()
    try:
        assert server.address == address
        assert mode(tmp_path / "p4runtime.sock") == 0o600
        with grpc.insecure_channel(address) as channel:
            answer = p4r_grpc.P4RuntimeStub(channel).Capabilities(p4r.CapabilitiesRequest(), timeout=10)
            assert answer.p4runtime_api_version
    finally:
        server.stop()


def test_why_a_socket_cannot_be_made_is_reported(tmp_path):
    with pytest.raises(OSError, match="No such file or directory"):
        Server({}, f"unix:{tmp_path}/no/such/p4runtime.sock")


def test_the_directory_is_announced_before_it_is_made_and_closed_to_others(tmp_path):
    announced = []
    access = LabAccess(tmp_path, lambda path: announced.append((path, path.exists())))
    assert announced == [(access.directory, False)]
    assert mode(access.directory) == 0o700
    assert access.grpc_address == f"unix:{access.directory}/p4runtime.sock"


def test_a_path_that_no_socket_can_have_is_refused(tmp_path):
    with refused(EnvironmentLacksError, problem="at most 107 bytes"):
        LabAccess(tmp_path / ("x" * 100), lambda path: None)


def test_who_called_sudo_owns_the_lab(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "5678")
    assert owner() == (1234, 5678)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert owner() == (1000, os.getegid())


def test_folders_that_packet_logs_need_are_those_of_who_called_sudo(monkeypatch, tmp_path):
    given = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "5678")
    monkeypatch.setattr(os, "chown", lambda path, *whose, follow_symlinks: given.append((path, whose)))
    wanted = tmp_path / "one" / "logs"
    assert made(wanted) == wanted.resolve()
    assert given == [(wanted, (1234, 5678)), (wanted.parent, (1234, 5678))]
    made(wanted)
    assert len(given) == 2, "what was there before stays whose it is"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_all_is_handed_over_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "5678")
    p4info, document = tmp_path / "x.p4info.txtpb", tmp_path / "x.json"
    p4info.write_text("info", encoding="utf-8")
    document.write_text("{}", encoding="utf-8")
    access = LabAccess(tmp_path, lambda path: None)
    copies = [Path(copy) for copy in access.publish(Program(tmp_path / "x.p4", document, p4info, "hash"))]
    assert [copy.read_text(encoding="utf-8") for copy in copies] == ["info", "{}"]
    assert {path.stat().st_uid for path in (access.directory, *copies)} == {0}
    access.hand_over()
    assert {(path.stat().st_uid, path.stat().st_gid) for path in (access.directory, *copies)} == {(1234, 5678)}
