"""p4runtime-shell, unmodified, from its own environment: every command that a user types."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from google.protobuf import text_format
from router_program import router_document, router_p4info
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from weft.paths import SHELL_PYTHON
from weft.switch.p4runtime.service import Server

SESSION = Path(__file__).parent / "shell_session.py"
PYTHON = Path(os.environ.get("WEFT_SHELL_PYTHON", SHELL_PYTHON))

pytestmark = pytest.mark.skipif(
    not PYTHON.exists(), reason="p4runtime-shell is not installed (make setup PARTS=shell makes .venv-shell)"
)


@pytest.mark.timeout(120)
def test_p4runtime_shell_does_all_it_can(server: Server, tmp_path: Path) -> None:
    info, program = tmp_path / "router.p4info.txtpb", tmp_path / "router.json"
    info.write_text(text_format.MessageToString(router_p4info()))
    program.write_bytes(router_document())
    packet = bytes(Ether(src="02:00:00:00:00:07") / IP(src="10.2.0.1", dst="10.0.0.9", ttl=5) / UDP())
    done = subprocess.run(
        [PYTHON, SESSION, server.address, info, program, packet.hex()],
        env=os.environ | {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "tables": {
            "mac": "020000000006",
            "acl": [10, True],
            "default refused": "Error(s) during Write:\n\t* At index 0: PERMISSION_DENIED,"
            " 'table 'routes': action 'NoAction' may only be used in table entries'\n",
            "counted": 5,
            "acl left": 0,
        },
        "selector": {"group": 1, "weights": [2]},
        "cells": {"counter": [0, 0, 0, 7, *[0] * 12], "meter": [3, 1, 4]},
        "replication": {"replicas": 2, "left": 0},
        "streams": {"payload": packet.hex(), "digests in a list": 9},
    }
