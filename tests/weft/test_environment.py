"""What a machine or a target lacks is reported before anything is created, with a remedy."""

import importlib.util
import os
import shutil
import subprocess

import pytest

from tests.refusals import refused
from weft import topologies
from weft.clocks import environment
from weft.clocks.environment import require_for, with_clock
from weft.errors import EnvironmentLacksError
from weft.scenario import ControlSection, FaultsSection
from weft.scenario.options import FabricOptions

FABRIC = topologies.leaf_spine(leaves=1, spines=0, delay_ps=0)


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine that has everything needed; tests remove parts of it."""
    missing = set()
    monkeypatch.setattr(environment, "_KERNEL_SETTINGS", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: None if name in missing else f"/usr/bin/{name}")
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, "", ""))
    monkeypatch.setattr(environment, "missing_capabilities", lambda: [])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else object())
    return missing


def test_nothing_is_lacking(machine):
    require_for(FABRIC, FabricOptions())
    require_for(FABRIC, FabricOptions(target="bmv2", dilation=1))


@pytest.mark.parametrize(
    ("program", "package"),
    [*environment._PROGRAMS.items(), ("mininet", "mininet")],
)
def test_a_missing_program_names_its_package(machine, program, package):
    machine.add(program)
    with pytest.raises(EnvironmentLacksError, match=package):
        require_for(FABRIC, FabricOptions())


def test_missing_capabilities_are_reported_by_name(machine, monkeypatch):
    monkeypatch.setattr(environment, "missing_capabilities", lambda: ["SYS_ADMIN", "NET_RAW"])
    with refused(EnvironmentLacksError, problem="lacks the capabilities"):
        require_for(FABRIC, FabricOptions())


def test_a_container_whose_profile_forbids_namespaces_is_reported(machine, monkeypatch):
    refusal = subprocess.CompletedProcess([], 1, "", "unshare: Operation not permitted")
    monkeypatch.setattr(subprocess, "run", lambda command, **_: refusal)
    with refused(EnvironmentLacksError, problem="Operation not permitted"):
        require_for(FABRIC, FabricOptions())


def test_a_container_whose_kernel_settings_are_read_only_is_reported(machine, monkeypatch, tmp_path):
    # A file that is not there, because root may write to every one that is.
    monkeypatch.setattr(environment, "_KERNEL_SETTINGS", tmp_path / "rp_filter")
    with refused(EnvironmentLacksError, problem="/proc/sys is read-only"):
        require_for(FABRIC, FabricOptions())
    (tmp_path / "rp_filter").write_text("0")
    require_for(FABRIC, FabricOptions())


def test_without_root_sudo_is_named(machine, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with refused(EnvironmentLacksError, problem="--clock virtual"):
        require_for(FABRIC, FabricOptions(clock="real"))


def test_without_root_the_clock_is_virtual_unless_it_is_named(machine, monkeypatch):
    assert with_clock(FabricOptions()).clock == "real"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert with_clock(FabricOptions()).clock == "virtual"
    assert with_clock(FabricOptions(clock="real")).clock == "real"
    assert with_clock(FabricOptions(target="bmv2")).clock == "real"
    require_for(FABRIC, FabricOptions())


def test_the_virtual_clock_needs_nothing_and_says_what_is(machine):
    machine |= {*environment._PROGRAMS, "mininet"}
    options = FabricOptions(clock="virtual", dilation=500, links="veth")
    require_for(FABRIC, options)
    assert with_clock(options).dilation == 1
    assert with_clock(options).links == "internal"


@pytest.mark.parametrize("program", ["simple_switch_grpc", "simple_switch_CLI"])
def test_bmv2_that_is_missing_names_what_to_install(machine, program):
    machine.add(program)
    with pytest.raises(EnvironmentLacksError, match=f"{program}.*p4lang-bmv2"):
        require_for(FABRIC, FabricOptions(target="bmv2", dilation=1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"faults": FaultsSection(loss=0.01)}, {"problem": "faults"}),
        ({"links": "internal"}, {"problem": "links: internal"}),
        ({"dilation": 10.0}, {"problem": "a dilation of 10"}),
    ],
)
def test_what_bmv2_does_not_have_is_refused(machine, options, words):
    with refused(EnvironmentLacksError, **words):
        require_for(FABRIC, FabricOptions(target="bmv2", **({"dilation": 1.0} | options)))
    require_for(FABRIC, FabricOptions(**options))


def test_link_delays_are_refused_on_bmv2(machine):
    delayed = topologies.leaf_spine(leaves=1, spines=0, delay_ps=1)
    with refused(EnvironmentLacksError, problem="link delays"):
        require_for(delayed, FabricOptions(target="bmv2", dilation=1))


def test_bmv2_has_no_virtual_clock(machine):
    with refused(EnvironmentLacksError, problem="real time only"):
        require_for(FABRIC, FabricOptions(clock="virtual", target="bmv2"))


def test_a_control_latency_is_the_virtual_clocks(machine):
    slow = FabricOptions(clock="real", control=ControlSection(latency=10**6))
    with refused(EnvironmentLacksError, place="control.latency", problem="1000000 ps"):
        require_for(FABRIC, slow)
    require_for(FABRIC, slow.changed(clock="virtual"))
