"""The plugin as a user's test suite sees it, in a pytest process of its own."""

import os
import subprocess
import sys

import pytest

TEST = """
import pytest
import weft.pytest_plugin

@pytest.mark.fabric(planes=1, leaves=1, spines=0, hosts_per_leaf=2, {arguments})
def test_it(fabric):
    raise AssertionError("a fabric was built")
"""


VIRTUAL = """
import numpy as np
import pytest
from weft import CollectiveRequest

@pytest.mark.fabric(clock="virtual", planes=1, leaves=1, spines=0, hosts_per_leaf=2, seed={seed})
@pytest.mark.parametrize("turn", [1, 2])
def test_it(fabric, turn, request):
    run = fabric.run(CollectiveRequest("allreduce", [np.ones(100, np.int32)] * 2))
    assert run.result.ok
    assert run.result.time_ps == request.config.cache.get("time", run.result.time_ps)
    request.config.cache.set("time", run.result.time_ps)
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that runs pytest on a test whose mark has the given arguments."""

    def started(arguments: str = "", test: str = TEST) -> str:
        (tmp_path / "test_mine.py").write_text(test.format(arguments=arguments, seed=1), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-rs", "--strict-markers"]
        # Named once, whether the package is installed (its entry point names the plugin, too) or not.
        environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(
            [*command, "-p", "weft.pytest_plugin", "--rootdir", tmp_path, tmp_path],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        return done.stdout + done.stderr

    return started


def test_a_test_is_skipped_where_no_fabric_can_run_and_says_why(run):
    output = run("clock='virtual', target='bmv2'")
    assert "1 skipped" in output
    assert "BMv2 runs in real time only" in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("dilution=3", "did you mean 'dilation'"),
        ("planez=1", "did you mean 'planes'"),
        ("mtu_bytes=1000", "256, 512, 1024, 2048 or 4096"),
    ],
)
def test_bad_arguments_are_reported(run, arguments, words):
    output = run(arguments)
    assert "1 error" in output
    assert words in output


def test_the_virtual_clock_runs_anywhere_and_repeats(run):
    assert "2 passed" in run(test=VIRTUAL)
