"""Layouts of well-known machines. docs/host.md says what is read from where, and what is assumed."""

from __future__ import annotations

from collections.abc import Mapping

from weft.topologies.hosts.layout import Accelerator, HostLayout, HostNic, NumaNode, PciSwitch

_GBPS = 10**9
# NCCL's figures for what a socket sends to another (src/graph/topo.h), in bytes per second times 8.
_SAPPHIRE_RAPIDS_BPS = 176 * _GBPS  # SRP_QPI_BW
_ZEN_2_BPS = 128 * _GBPS  # AMD_ZEN12_BW
_ARM_BPS = 48 * _GBPS  # ARM_BW
# Eight channels a socket, 8 B wide.
_DDR5_4800_BPS = 8 * 64 * 4800 * 10**6
_DDR4_3200_BPS = 8 * 64 * 3200 * 10**6
_XEON_8480C = (
    NumaNode(0, "0-55,112-167", _DDR5_4800_BPS),
    NumaNode(1, "56-111,168-223", _DDR5_4800_BPS),
)


def _dgx_h100() -> HostLayout:
    """Each GPU is behind its NIC's switch: two bridges between them, and a host bridge for each pair."""
    switches: list[PciSwitch] = []
    accelerators, nics = [], []
    for gpu in range(8):
        numa = gpu // 4
        switches += [PciSwitch(f"sw{gpu}", f"numa{numa}"), PciSwitch(f"sw{gpu}.gpu", f"sw{gpu}")]
        accelerators.append(Accelerator(f"sw{gpu}.gpu"))
        nics.append(HostNic(f"sw{gpu}"))
        if gpu in (0, 4):
            nics.append(HostNic(f"numa{numa}", ports=2, is_storage=True))
    return HostLayout(_XEON_8480C, _SAPPHIRE_RAPIDS_BPS, tuple(switches), tuple(accelerators), tuple(nics), nvlinks=18)


def _hgx_h100() -> HostLayout:
    """Two GPUs and two NICs share a switch and its upstream link."""
    switches: list[PciSwitch] = []
    accelerators, nics = [], []
    for switch in range(4):
        switches.append(PciSwitch(f"sw{switch}", f"numa{switch // 2}"))
        for pair in "ab":
            switches.append(PciSwitch(f"sw{switch}.{pair}", f"sw{switch}"))
            accelerators.append(Accelerator(f"sw{switch}.{pair}"))
            nics.append(HostNic(f"sw{switch}.{pair}"))
    return HostLayout(_XEON_8480C, _SAPPHIRE_RAPIDS_BPS, tuple(switches), tuple(accelerators), tuple(nics), nvlinks=18)


def _dgx_a100() -> HostLayout:
    """Each of four switches has two GPUs and two NICs, every one behind a separate bridge; four NUMA nodes a socket."""
    numa = tuple(
        NumaNode(node // 4, f"{16 * node}-{16 * node + 15},{128 + 16 * node}-{143 + 16 * node}", _DDR4_3200_BPS // 4)
        for node in range(8)
    )
    switches: list[PciSwitch] = []
    accelerators, nics = [], []
    for number, node in enumerate((3, 1, 7, 5)):
        switches.append(PciSwitch(f"sw{number}", f"numa{node}", "4x16"))
        for pair in "ab":
            for kind in ("gpu", "nic"):
                switches.append(PciSwitch(f"sw{number}.{kind}-{pair}", f"sw{number}", "4x16"))
            accelerators.append(Accelerator(f"sw{number}.gpu-{pair}", "4x16"))
            nics.append(HostNic(f"sw{number}.nic-{pair}", "4x16"))
        if number in (1, 3):
            nics.append(HostNic("numa0" if number == 1 else "numa4", "4x16", ports=2, is_storage=True))
    return HostLayout(numa, _ZEN_2_BPS, tuple(switches), tuple(accelerators), tuple(nics), nvlinks=12)


def _gb200_tray() -> HostLayout:
    """Two Grace processors, two GPUs and two NICs at each; GPUs reach their processor over NVLink-C2C."""
    numa = (NumaNode(0, "0-71", 4096 * _GBPS), NumaNode(1, "72-143", 4096 * _GBPS))
    accelerators = tuple(Accelerator(f"numa{gpu // 2}", rate_bps=1800 * _GBPS) for gpu in range(4))
    nics = tuple(HostNic(f"numa{nic // 2}") for nic in range(4))
    return HostLayout(numa, _ARM_BPS, (), accelerators, nics, nvlinks=18)


def _server_2s() -> HostLayout:
    """No accelerators: ranks' data are in the memory of the first socket; a NIC at each."""
    return HostLayout(_XEON_8480C, _SAPPHIRE_RAPIDS_BPS, nics=(HostNic("numa0"), HostNic("numa1")))


HOST_LAYOUTS: Mapping[str, HostLayout] = {
    "dgx-a100": _dgx_a100(),
    "dgx-h100": _dgx_h100(),
    "gb200-tray": _gb200_tray(),
    "hgx-h100": _hgx_h100(),
    "server-2s": _server_2s(),
}
