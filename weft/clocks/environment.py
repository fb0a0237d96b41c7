"""Checks what a run needs of the machine before anything is created."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from weft.errors import EnvironmentLacksError
from weft.scenario.options import FabricOptions
from weft.topologies import FabricSpec

_PROGRAMS = {
    "mnexec": "mininet",
    "ip": "iproute2",
    "ethtool": "ethtool",
    "sysctl": "procps",
}
# By bit number (linux/capability.h): for namespaces and mounts, entering them, interfaces, and packet sockets.
_CAPABILITIES = {"SYS_ADMIN": 21, "SYS_CHROOT": 18, "NET_ADMIN": 12, "NET_RAW": 13}
_PRIORITY = {"SYS_NICE": 23}
"""Lets threads of switches and hosts run before other processes."""
# Interfaces are quietened below it. Containers have it read-only, whatever their capabilities.
_KERNEL_SETTINGS = Path("/proc/sys/net/ipv4/conf/default/rp_filter")
_NAMESPACE_S = 20.0
"""A namespace takes milliseconds."""
_DEFAULTS = FabricOptions()
_BMV2_HINT = (
    "install BMv2 with P4Runtime and Thrift (p4lang's package p4lang-bmv2, or build p4lang/behavioral-model "
    "--with-pi), or leave out --target bmv2"
)


def require_mininet() -> None:
    """Check that fabrics can be built in Mininet here.

    Raises:
        EnvironmentLacksError: not root, or a program, Mininet itself or a right is missing; names what to install
            or to allow.
    """
    require_root()
    require_mininet_installed()
    require_rights()


def require_root(choice: str = "--clock virtual") -> None:
    """Raise EnvironmentLacksError unless the user is root; `choice` names the way to virtual time instead."""
    if os.geteuid() != 0:
        ways = "run this with sudo, or in virtual time, which needs neither root nor Mininet"
        raise EnvironmentLacksError(f"Mininet needs root: {ways}: {choice}")


def require_mininet_installed() -> None:
    """Raise EnvironmentLacksError if Mininet or a program that it runs is missing; names the package."""
    for program, package in _PROGRAMS.items():
        if shutil.which(program) is None:
            raise EnvironmentLacksError(f"the program '{program}' is missing: install the package {package}")
    if importlib.util.find_spec("mininet") is None:
        raise EnvironmentLacksError(
            "Mininet cannot be imported: install the package mininet, and make .venv from /usr/bin/python3 "
            "with --system-site-packages (`make setup` does both)"
        )


def require_rights() -> None:
    """Raise EnvironmentLacksError if this process may not make network namespaces or set the kernel's parameters.

    The namespace that is tried is gone when this returns.
    """
    if missing := missing_capabilities():
        raise EnvironmentLacksError(
            f"this process lacks {'the capability' if len(missing) == 1 else 'the capabilities'} {', '.join(missing)}: "
            f"a container needs {', '.join(_CAPABILITIES)} (docker run --cap-add=…), and SYS_NICE to be late less often"
        )
    # Mininet itself would wait for its first host forever.
    if problem := _namespace_problem():
        raise EnvironmentLacksError(
            f"network namespaces cannot be made here ({problem}): the container's security profile "
            "(seccomp, AppArmor) must permit it, too"
        )
    if not os.access(_KERNEL_SETTINGS, os.W_OK):
        raise EnvironmentLacksError(
            "/proc/sys is read-only here: a container needs --privileged, or --security-opt unmask=/proc/sys "
            "(Docker: --security-opt systempaths=unconfined)"
        )


def _namespace_problem() -> str:
    try:
        tried = subprocess.run(
            ["mnexec", "-n", "ip", "link", "set", "lo", "up"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_NAMESPACE_S,
        )
    except subprocess.TimeoutExpired:
        return f"none after {_NAMESPACE_S:g} s"
    return (tried.stderr.strip() or f"mnexec ended with {tried.returncode}") if tried.returncode else ""


def missing_capabilities() -> list[str]:
    """Return the names of the capabilities that a fabric in Mininet needs and this process lacks."""
    return _missing(_CAPABILITIES)


def may_set_priorities() -> bool:
    """Return whether threads of switches and hosts may run before other processes."""
    return not _missing(_PRIORITY)


def _missing(bits: dict[str, int]) -> list[str]:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    effective = int(next(line for line in status.splitlines() if line.startswith("CapEff:")).split()[1], 16)
    return [name for name, bit in bits.items() if not effective >> bit & 1]


def require_bmv2() -> tuple[str, str]:
    """Return the paths of simple_switch_grpc and of simple_switch_CLI, which sets its queues over Thrift.

    Raises:
        EnvironmentLacksError: one is not on PATH.
    """
    paths = []
    for program in ("simple_switch_grpc", "simple_switch_CLI"):
        path = shutil.which(program)
        if path is None:
            raise EnvironmentLacksError(f"{program} is not on PATH: {_BMV2_HINT}")
        paths.append(path)
    return paths[0], paths[1]


def with_clock(options: FabricOptions) -> FabricOptions:
    """Return the options with a clock: the real one if Mininet is available or BMv2 is requested, else the virtual one.

    Only the real clock uses dilation and the kind of links; under the virtual clock they are set to what it has.
    """
    clock = options.clock
    if clock is None:
        clock = "real" if os.geteuid() == 0 or options.target == "bmv2" else "virtual"
    if clock == "virtual":
        return options.changed(clock=clock, dilation=1.0, links="internal")
    return options.changed(clock=clock)


CIRCUITS_STAY = (
    "under the real clock circuits stay as they are at the start, because an interface keeps the peer that it was made "
    "with: use --clock virtual"
)


def require_for(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check all that a fabric needs.

    Raises:
        EnvironmentLacksError: something is missing, or the clock or target does not support what is requested.
    """
    options = with_clock(options)
    if options.clock == "virtual":
        if options.target == "bmv2":
            raise EnvironmentLacksError(
                "BMv2 runs in real time only: use --clock real, or --target embedded with --clock virtual"
            )
        return
    if options.circuits.schedule:
        raise EnvironmentLacksError(f"{CIRCUITS_STAY}", place="circuits.schedule")
    if options.control.latency:
        raise EnvironmentLacksError(
            f"{options.control.latency} ps is the virtual clock's; the real clock has that of the "
            "machine: leave it out, or use --clock virtual",
            place="control.latency",
        )
    if options.switching.cut_through:
        raise EnvironmentLacksError(
            "cut-through is the virtual clock's: on real interfaces only whole frames come. "
            "Take store-and-forward, or use --clock virtual",
            place="switching.mode",
        )
    if options.link_retry.links:
        raise EnvironmentLacksError(
            "link-level retry is the virtual clock's: real interfaces are the kernel's, which sends nothing again. "
            "Leave it out, or use --clock virtual",
            place="link_retry.links",
        )
    if of_switches := options.observe.of_switches:
        raise EnvironmentLacksError(
            f"observe: {', '.join(of_switches)} are recorded under the virtual clock only, whose process has the "
            "switches: leave them out, or use --clock virtual"
        )
    if options.target == "bmv2":
        require_bmv2()
        _require_nothing_that_bmv2_lacks(fabric, options)
    require_mininet()


def _require_nothing_that_bmv2_lacks(fabric: FabricSpec, options: FabricOptions) -> None:
    lacking = []
    if options.faults.any:
        lacking.append("faults")
    if options.observe.captures:
        lacking.append("observe.captures")
    if options.links == "internal":
        lacking.append("links: internal")
    of_engine = ("buffer", "scheduling", "trimming", "pfc", "credits", "link_retry")
    lacking += [name for name in of_engine if getattr(options, name) != getattr(_DEFAULTS, name)]
    if options.switching.takes_part:
        lacking.append("switching")
    if options.dilation != 1.0:
        lacking.append(f"a dilation of {options.dilation:g} (only 1)")
    if fabric.scale_up is not None:
        lacking.append("the dilation that links inside hosts (fabric.scale_up) take")
    if any(link.link.delay_ps for link in fabric.links):
        lacking.append("link delays (only 0)")
    if lacking:
        raise EnvironmentLacksError(
            f"BMv2 does not have {', '.join(lacking)}: take it out of the scenario, or use --target embedded"
        )
