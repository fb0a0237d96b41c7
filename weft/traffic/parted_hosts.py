"""Hosts that failed links keep apart for good, and the runs that therefore cannot end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_MOST_NAMED = 4
Pair = tuple[int, int, int]
"""A NIC's number and two hosts' indices."""


@dataclass(frozen=True)
class PartedHosts:
    """Parts of the network that stay connected when links are down and no scheduled event brings any of them up.

    `parts` has the connected part of each host's NIC, by number of the NIC and index of the host; `down` names links.
    """

    parts: Mapping[int, Mapping[int, int]]
    down: tuple[str, ...]

    def among(self, pairs: Iterable[Pair]) -> list[Pair]:
        """Return the pairs that no path joins, each once, in order."""
        apart = {
            (nic, min(hosts), max(hosts))
            for nic, *hosts in pairs
            if self.parts[nic][hosts[0]] != self.parts[nic][hosts[1]]
        }
        return sorted(apart)

    def cut_off(self, names: Sequence[str]) -> str:
        """Return in words that no link joins hosts of these names to the others."""
        left_out = len(names) - _MOST_NAMED
        hosts = ", ".join(names[:_MOST_NAMED]) + (f" and {left_out} more" if left_out > 0 else "")
        return f"nothing joins {hosts} to the other ranks, and no scheduled event will; down: {self._down()}"

    def problem(self, apart: Sequence[Pair], names: Sequence[str]) -> str:
        """Return in words what is lost, given the pairs that are apart and the hosts' names."""
        nic, one, other = apart[0]
        more = f" (and {len(apart) - 1} more pairs)" if len(apart) > 1 else ""
        return (
            f"nothing joins {names[one]} and {names[other]} over NIC {nic}{more}, and no scheduled event will; "
            f"down: {self._down()}"
        )

    def _down(self) -> str:
        left_out = len(self.down) - _MOST_NAMED
        links = ", ".join(self.down[:_MOST_NAMED]) + (f" and {left_out} more" if left_out > 0 else "")
        return links or "no link, with these circuits"
