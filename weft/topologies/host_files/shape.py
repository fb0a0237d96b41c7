"""The shape of a host, and the description of a format of its files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class HostShape:
    """Accelerators, NICs and links of a host; all hosts of a fabric are alike.

    Attributes:
        ranks: accelerators, each a rank.
        nics_per_rank: NICs near each accelerator, one for each plane.
        nic_rate_bps: rate of each NIC.
        scale_up_rate_bps: total rate of an accelerator's links to the others, each way; None without such links.
        notes: sentences on what was left out or assumed.
    """

    ranks: int
    nics_per_rank: int
    nic_rate_bps: int
    scale_up_rate_bps: int | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class HostFormat:
    """A format of files of hosts.

    Attributes:
        name: its name.
        title: its name in sentences.
        recognises: whether content looks like this format.
        read: returns the shape. Raises TopologyError with the place within the file.
    """

    name: str
    title: str
    recognises: Callable[[bytes], bool]
    read: Callable[[bytes], HostShape]
