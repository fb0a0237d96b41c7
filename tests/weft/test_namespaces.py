"""Processes in network namespaces are found and ended, and no others."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from weft.system.namespaces import end_all_in, network_namespace, processes_in

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

# Ignores being asked to end, and starts what does not.
STUBBORN = "trap '' TERM; echo ready; sleep 600 & while :; do wait; done"


@pytest.fixture
def inside() -> Iterator["subprocess.Popen[str]"]:
    command = ["unshare", "--net", "sh", "-c", STUBBORN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        namespace = network_namespace(process.pid)
        yield process
        end_all_in([namespace] if namespace is not None else [], patience_s=0.1)


def test_all_in_a_namespace_are_ended(inside: "subprocess.Popen[str]") -> None:
    namespace = network_namespace(inside.pid)
    assert namespace is not None
    assert namespace != network_namespace()
    assert inside.pid in {process.pid for process in processes_in([namespace])}
    assert inside.pid in {process.pid for process in end_all_in([namespace], patience_s=0.1)}
    inside.wait()
    assert processes_in([namespace]) == []


def test_the_own_namespace_is_left_alone(inside: "subprocess.Popen[str]") -> None:
    own = network_namespace()
    assert own is not None
    assert end_all_in([own]) == []
    assert inside.poll() is None


def test_a_process_that_is_gone_has_no_namespace(inside: "subprocess.Popen[str]") -> None:
    inside.kill()
    inside.wait()
    assert network_namespace(inside.pid) is None
