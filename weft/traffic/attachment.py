"""Joins a port of a host's NIC to its fabric: a packet socket, or links to and from the leaf's port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from weft.engine import Engine, Link, Node, PacketSocket


class Attachment(Protocol):
    """One port's way into the fabric and back."""

    @property
    def link(self) -> Link:
        """Takes the frames that the port transmits."""

    def connect(self, node: Node, port: int) -> None:
        """Deliver what arrives to the port."""

    def stats(self) -> Mapping[str, Any] | None:
        """Return the counters that are the host's own; None if the fabric has them all."""

    def reset_stats(self) -> None:
        """Set these counters to zero."""

    def close(self) -> None:
        """Close what was opened."""


Attach = Callable[[str], Attachment]
"""From the name of an interface to its attachment."""


class SocketAttachment:
    """The real clock's: a packet socket on an interface. Raises OSError if it cannot be opened.

    Delay and faults of the host's link belong to the fabric's end of it.
    """

    def __init__(self, engine: Engine, interface: str) -> None:
        self.link = Link(engine, name=interface)
        self._socket = PacketSocket(engine, interface)
        self.link.connect(self._socket)

    def connect(self, node: Node, port: int) -> None:
        """See Attachment."""
        self._socket.connect(node, port)

    def stats(self) -> Mapping[str, Any]:
        """See Attachment."""
        return self._socket.stats()

    def reset_stats(self) -> None:
        """See Attachment."""
        self._socket.reset_stats()

    def close(self) -> None:
        """See Attachment."""
        self._socket.close()


class LinkAttachment:
    """The virtual clock's: `link` leads to the leaf's port, `from_fabric` comes from there."""

    def __init__(self, link: Link, from_fabric: Link) -> None:
        self.link = link
        self._from_fabric = from_fabric

    def connect(self, node: Node, port: int) -> None:
        """See Attachment."""
        self._from_fabric.connect(node, port)

    def stats(self) -> None:
        """See Attachment."""

    def reset_stats(self) -> None:
        """See Attachment."""

    def close(self) -> None:
        """See Attachment."""
