"""Users' path choices."""

from __future__ import annotations

import abc
from functools import partial

import numpy as np

from weft.engine import PathChoice as NativePathChoice
from weft.engine import python_path_choice
from weft.traffic.extensions.congestion import PathProperties
from weft.traffic.extensions.loading import ClassSpec, make, overridden


class PathChoice(abc.ABC):
    """One connection's: which of the fabric's paths each packet takes, by the entropy that switches hash.

    Packets of one entropy keep to one path, as long as the fabric does not change. Times are emulated picoseconds. Each
    connection gets an object of its own. A scenario's `path_parameters` are keyword arguments after `path` and `rng`.
    """

    entropies = 1 << 14
    """An entropy is a number below this: the lower bits of the UDP source port, and of IPv6's flow label."""

    def __init__(self, path: PathProperties, rng: np.random.Generator) -> None:
        self.path = path
        self.rng = rng
        """Random numbers drawn from it repeat with the scenario's seed."""

    @abc.abstractmethod
    def entropy(self, now_ps: int, sequence: int, retransmission: bool) -> int:
        """Return the entropy of the packet that is about to be sent, the `sequence`-th of the connection."""

    def on_delivered(  # noqa: B027
        self, now_ps: int, entropy: int, round_trip_ps: int, congestion_experienced: bool
    ) -> None:
        """Process the acknowledgement of a packet.

        `round_trip_ps` is 0 if it had been sent twice; `congestion_experienced`: a switch had marked it (CE).
        """

    def on_lost(self, now_ps: int, entropy: int) -> None:  # noqa: B027
        """Process the loss of a packet, which has to be sent again."""

    def on_congestion_notification(self, now_ps: int) -> None:  # noqa: B027
        """Process a CNP: the receiver has received a packet that a switch marked."""


def path_choice(spec: ClassSpec, path: PathProperties, rng: np.random.Generator) -> NativePathChoice:
    """Create a user's path choice for one connection. Raises ExtensionError if it cannot be used."""
    user = make(spec, PathChoice, path, rng)  # type: ignore[type-abstract]
    method = partial(overridden, user, PathChoice)
    return python_path_choice(
        type(user).__name__,
        entropy=user.entropy,
        on_delivered=method("on_delivered"),
        on_lost=method("on_lost"),
        on_congestion_notification=method("on_congestion_notification"),
    )
