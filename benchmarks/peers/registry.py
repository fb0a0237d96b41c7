"""The simulators that there are adapters for."""

from __future__ import annotations

from peers.peer import Peer
from weft.errors import BadInputError
from weft.registry import Registry, constant_of

PEERS: Registry[Peer] = Registry("peers.adapters", "peer", constant_of(Peer), BadInputError)  # type: ignore[type-abstract]
"""Adapters by their names."""
