"""Base of programs on hosts' IP stacks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.engine import _core

if TYPE_CHECKING:
    from weft.traffic.host import Host


class OpenProgram(ABC):
    """A program on a host: a native application, and what is to be known of it after its end."""

    application: _core.Application

    @abstractmethod
    def record(self) -> Any:
        """Return what it has found, as plain data that can be sent to another process."""


@dataclass(frozen=True)
class Program(ABC):
    """A description of a program; `rank` says on which host it runs."""

    rank: int

    @abstractmethod
    def open(self, host: Host) -> OpenProgram:
        """Make it on its host. Raises ValueError for what the host's stack refuses."""
