"""A process group as PyTorch calls it: a group without backends of its own keeps its names itself."""

from __future__ import annotations

import torch.distributed as dist


class NamedGroup(dist.ProcessGroup):
    """A process group in Python, by name; the methods have the names of PyTorch's C++ class."""

    def __init__(self, rank: int, count: int, name: str) -> None:
        super().__init__(rank, count)
        self._group_name, self._description = name, ""

    def getBackendName(self) -> str:
        """Return "weft"."""
        return "weft"

    def setGroupName(self, name: str) -> None:
        """Note the name by which PyTorch knows the group."""
        self._group_name = name

    def getGroupName(self) -> str:
        """Return that name."""
        return self._group_name

    def setGroupDesc(self, description: str) -> None:
        """Note what the group is for."""
        self._description = description

    def getGroupDesc(self) -> str:
        """Return that."""
        return self._description
