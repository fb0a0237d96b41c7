"""Only the user who runs the lab has access to its P4Runtime."""

import contextlib
import socket
import stat
import subprocess
import sys
from pathlib import Path

from weft import topologies
from weft.clocks.real import lab_state
from weft.run.fabric import Fabric

CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
STRANGER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
SMALL = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=1)


def tcp_listeners(state: lab_state.LabState) -> list[str]:
    """What the lab's processes listen on."""
    done = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True)
    pids = [f"pid={process.pid}," for process in (state.owner, *state.processes)]
    return [line for line in done.stdout.splitlines() if any(pid in line for pid in pids)]


def test_other_users_cannot_reach_the_switches(tmp_path):
    with Fabric(SMALL, clock="real"):
        state = lab_state.load()
        (address, _) = state.grpc["p0l0"]
        path = Path(address.removeprefix("unix:"))
        assert stat.S_ISSOCK(path.stat().st_mode)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert tcp_listeners(state) == []
        # Not subprocess's own `user`, for which it forks: gRPC's threads do not survive that. The distribution's
        # interpreter, which everybody may run wherever this tree lies.
        stranger = subprocess.run(
            [*STRANGER, "/usr/bin/python3", "-c", CONNECT, str(path)],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
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
        state = lab_state.load()
        (address, _) = state.grpc["p0l0"]
        assert len(tcp_listeners(state)) == 1
        host, port = address.rsplit(":", 1)
        assert host == "127.0.0.1"
        with contextlib.closing(socket.create_connection((host, int(port)), timeout=10)):
            pass
