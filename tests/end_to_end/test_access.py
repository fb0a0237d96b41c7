"""The lab's P4Runtime is for whoever runs the lab."""

import contextlib
import socket
import stat
import subprocess
import sys
from pathlib import Path

import topologies
from weft import lab_state
from weft.fabric import Fabric

CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
SMALL = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=1)


def listening_ports() -> set[str]:
    done = subprocess.run(["ss", "-Hltn"], capture_output=True, text=True, check=True)
    return {line.split()[3] for line in done.stdout.splitlines()}


def test_other_users_cannot_reach_the_switches(tmp_path):
    before = listening_ports()
    with Fabric(SMALL, clock="real"):
        state = lab_state.load()
        (address, _) = state.grpc["p0l0"]
        path = Path(address.removeprefix("unix:"))
        assert stat.S_ISSOCK(path.stat().st_mode)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert listening_ports() == before
        stranger = subprocess.run(
            [sys.executable, "-c", CONNECT, str(path)],
            capture_output=True,
            text=True,
            check=False,
            user=65534,
            group=65534,
            extra_groups=[],
        )
        assert "PermissionError" in stranger.stderr
        health = subprocess.run(
            [sys.executable, "-m", "weft", "controller", "health"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert health.returncode == 0, health.stderr
    assert not path.parent.exists()


def test_tcp_is_an_option():
    with Fabric(SMALL, clock="real", grpc="tcp"):
        (address, _) = lab_state.load().grpc["p0l0"]
        host, port = address.rsplit(":", 1)
        assert host == "127.0.0.1"
        with contextlib.closing(socket.create_connection((host, int(port)), timeout=10)):
            pass
