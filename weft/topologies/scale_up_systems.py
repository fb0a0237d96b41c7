"""Systems of accelerators with scale-up links: how many links, of which rate, to how many switches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from weft.topologies.addressing import MAX_PORTS
from weft.topologies.fabric import DEFAULT_TREE_CHILDREN

_TREE_CHILDREN = (DEFAULT_TREE_CHILDREN, 64, 128)
"""Widths of the bitmap in which a switch notes who has contributed to a sum."""
SystemName = Literal["dgx-h100", "dgx-h100-256", "nvl72", "nvl576", "ualink-72"]
HostSystemName = Literal["dgx-h100", "nvl72", "ualink-72"]
"""Those with one tier of switches, which can be the inside of a host."""
HOST_SYSTEMS: tuple[str, ...] = get_args(HostSystemName)


@dataclass(frozen=True)
class System:
    """Counts and rates of a scale-up domain.

    Attributes:
        accelerators: of the whole fabric.
        switches: first-tier switches of an accelerator, each in a separate plane.
        links: links of an accelerator, shared out over its switches as evenly as possible, the first ones first.
        link_rate_bps: rate of every link.
        domain: accelerators of the same first-tier switches.
        upper_switches: second-tier switches of a plane; 0 with a single domain.
        oversubscription: links of a first-tier switch to accelerators, divided by its links to the second tier.
    """

    accelerators: int = 8
    switches: int = 4
    links: int = 4
    link_rate_bps: int = 200 * 10**9
    domain: int = 8
    upper_switches: int = 0
    oversubscription: int = 1

    @property
    def accelerator_rate_bps(self) -> int:
        """Rate of all links of an accelerator together, one way."""
        return self.links * self.link_rate_bps

    @property
    def links_of_planes(self) -> list[int]:
        """An accelerator's links to its switch of each plane."""
        each, more = divmod(self.links, self.switches)
        return [each + (plane < more) for plane in range(self.switches)]

    @property
    def domains(self) -> int:
        """Groups of accelerators with the same first-tier switches."""
        return self.accelerators // self.domain

    @property
    def tree_children(self) -> int:
        """Width of switches' bitmaps: the narrowest that holds all children of a switch, as far as there is one."""
        most = max(self.domain, self.domains if self.upper_switches else 0)
        return next((width for width in _TREE_CHILDREN if width >= most), _TREE_CHILDREN[-1])

    def problem(self) -> tuple[str, str, str] | None:
        """Return the first parameter that does not fit the others, why, and what would be valid; None if all fit."""
        if self.links < self.switches:
            return "links", f"{self.links} do not reach {self.switches} switches", f"at least {self.switches}"
        if self.domain > self.accelerators or self.accelerators % self.domain:
            fitting = [str(each) for each in range(2, self.accelerators + 1) if self.accelerators % each == 0]
            return "domain", f"{self.domain} do not divide {self.accelerators} accelerators", ", ".join(fitting)
        if self.domains > 1 and not self.upper_switches:
            return "upper_switches", f"0 cannot join {self.domains} domains", "at least 1"
        if self.domains == 1 and self.upper_switches:
            return "upper_switches", "a single domain has no second tier", "0, or a smaller domain"
        return self._problem_of_ports()

    def _problem_of_ports(self) -> tuple[str, str, str] | None:
        for links in set(self.links_of_planes):
            down = self.domain * links
            if not self.upper_switches:
                up = above = 0
            elif down % (self.oversubscription * self.upper_switches):
                per = f"{self.upper_switches} upper switches at an oversubscription of {self.oversubscription}"
                return (
                    "upper_switches",
                    f"{down} links of a first-tier switch are not shared evenly by {per}",
                    "a divisor",
                )
            else:
                up = down // self.oversubscription
                above = up // self.upper_switches * self.domains
            for ports, what in ((down + up, "first"), (above, "second")):
                if ports > MAX_PORTS:
                    key = "upper_switches" if what == "second" else "domain"
                    return key, f"a {what}-tier switch would have {ports} ports", f"at most {MAX_PORTS}"
        return None


SYSTEMS: Mapping[str, System] = {
    # NVIDIA, "Upgrading Multi-GPU Interconnectivity with the Third-Generation NVIDIA NVSwitch": NVLink 4, 18 links of
    # 25 GB/s each way; NVIDIA's slides on NVSwitch (Hot Chips 34): 5, 4, 4 and 5 links to four switches, which have 20,
    # 16, 16 and 20 links to a second tier. The second tier's switches in a plane are assumed.
    "dgx-h100": System(8, 4, 18, 200 * 10**9, domain=8),
    "dgx-h100-256": System(256, 4, 18, 200 * 10**9, domain=8, upper_switches=4, oversubscription=2),
    # NVIDIA, "NVLink and NVLink Switch", and the GB200 multi-node tuning guide: NVLink 5, 18 links of 50 GB/s each way,
    # nine trays of two switches. NVLink 5 joins up to 576 GPUs; the second tier as a whole is assumed.
    "nvl72": System(72, 18, 18, 400 * 10**9, domain=72),
    "nvl576": System(576, 18, 18, 400 * 10**9, domain=72, upper_switches=8),
    # AMD's Helios as announced in 2025: 72 accelerators, 3.6 TB/s each, both ways together; UALink 200G: stations of
    # 800 Gb/s. The number of switches is assumed.
    "ualink-72": System(72, 18, 18, 800 * 10**9, domain=72),
}
