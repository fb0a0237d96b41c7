"""Requirements of labs under the real clock, as runs themselves check them (`weft.clocks.environment`).

Each check imports that module itself, because it needs the engine, which may be missing.
"""

from __future__ import annotations

from pathlib import Path

from weft.doctor.capability import Capability, Finding, program, required_by
from weft.paths import SHELL_PYTHON

_NO_LABS = "no labs in Mininet; runs in virtual time work"


def _root() -> Finding:
    from weft.clocks.environment import require_root

    return required_by(require_root, "this user is root")


def _mininet() -> Finding:
    from weft.clocks.environment import require_mininet_installed

    return required_by(require_mininet_installed, "Mininet and the programs that it runs")


def _namespaces() -> Finding:
    from weft.clocks.environment import require_rights

    return required_by(require_rights, "a namespace was made, and is gone")


def _priority() -> Finding:
    from weft.clocks.environment import may_set_priorities

    present = may_set_priorities()
    return Finding(present, "SYS_NICE" if present else "this process lacks the capability SYS_NICE")


def _bmv2() -> Finding:
    from weft.clocks.environment import require_bmv2

    return required_by(require_bmv2, "simple_switch_grpc and simple_switch_CLI")


def _shell() -> Finding:
    present = SHELL_PYTHON.exists()
    return Finding(present, str(SHELL_PYTHON) if present else f"{SHELL_PYTHON} is missing")


def _rdma() -> Finding:
    devices = sorted(each.name for each in Path("/sys/class/infiniband").glob("*"))
    if devices:
        return Finding(True, ", ".join(devices))
    release = Path("/proc/sys/kernel/osrelease").read_text(encoding="utf-8").strip()
    folder = Path("/lib/modules", release, "kernel/drivers/infiniband/sw/rxe")
    module = next(iter(sorted(folder.glob("rdma_rxe.ko*"))), None)
    return Finding(module is not None, f"Soft-RoCE: {module}" if module else "no RDMA device, and no module rdma_rxe")


def _verbs() -> Finding:
    from weft.verbs.libraries import libibverbs, missing_because

    missing = missing_because()
    return Finding(not missing, missing or f"a provider for {libibverbs()}")


CAPABILITIES = [
    Capability(
        name="root",
        purpose="labs in Mininet",
        look=_root,
        cost=_NO_LABS,
        install="run the command with sudo",
    ),
    Capability(
        name="Mininet",
        purpose="labs in Mininet",
        look=_mininet,
        cost=_NO_LABS,
        install="apt install mininet iproute2 ethtool procps, and make .venv with --system-site-packages",
    ),
    Capability(
        name="network namespaces",
        purpose="labs in Mininet",
        look=_namespaces,
        cost=_NO_LABS,
        install="as root; in a container, --privileged or the rights that docs/lab-vm.md lists",
    ),
    Capability(
        name="real-time priority",
        purpose="labs in Mininet",
        look=_priority,
        cost="switches and hosts are late more often: use a higher dilation",
        install="as root; in a container, --cap-add SYS_NICE",
    ),
    Capability(
        name="BMv2",
        purpose="--target bmv2",
        look=_bmv2,
        cost="switches are Weft's own only",
        install="p4lang's package p4lang-bmv2: simple_switch_grpc and simple_switch_CLI",
    ),
    Capability(
        name="p4runtime-shell",
        purpose="weft shell",
        look=_shell,
        cost="no weft shell; weft controller and weft switch-cli work",
        install="make setup PARTS=shell, in a checkout",
    ),
    Capability(
        name="RDMA devices of labs",
        purpose="ibv_devinfo, perftest, UCX … in hosts of a lab (docs/verbs.md)",
        look=_verbs,
        cost="RDMA programs find no device in a lab; weft.rdma works",
        install="apt install libibverbs-dev, then build Weft again (make setup, or pip install .)",
    ),
    Capability(
        name="RDMA device",
        purpose="the kernel's RoCEv2 on hosts of a lab (docs/lab-vm.md)",
        look=_rdma,
        cost="no verbs of the kernel; weft.rdma works",
        install="Ubuntu: apt install linux-modules-extra-$(uname -r), then vagrant/soft-roce.sh --install",
    ),
    Capability(
        name="tcpdump",
        purpose="captures on the interfaces of a lab",
        look=program("tcpdump"),
        cost="capture with weft run --pcap",
        install="apt install tcpdump",
    ),
    Capability(
        name="iperf3",
        purpose="h0 iperf3 at the prompt of a lab",
        look=program("iperf3"),
        cost="no throughput tests by hand",
        install="apt install iperf3",
    ),
]
