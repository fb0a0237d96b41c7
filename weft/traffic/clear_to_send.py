"""Receiver-driven admission of a collective's messages: senders transmit what receivers have cleared.

Source: Gangidi et al., "RDMA over Ethernet for Distributed AI Training at Meta Scale", SIGCOMM 2024, section 5.2; the
defaults are NCCL's: slots of a connection (NCCL_STEPS in its src/include/device.h), and the chunk of a message between
two ranks over a network (NCCL_P2P_NET_CHUNKSIZE, 128 KiB).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from weft.errors import InvalidValueError
from weft.quantities.definitions import SIZE, whole

WINDOW = whole(1, 1024)
"""Valid windows (kMaxClearToSendWindow in engine/collectives/clear_to_send.hpp)."""
CHUNK = SIZE.between(256, 1 << 30)
"""Valid chunks (kMinClearToSendChunkBytes in engine/collectives/clear_to_send.hpp)."""


@dataclass(frozen=True)
class ClearToSend:
    """How much receivers clear.

    Attributes:
        window: messages of a channel that are cleared and have not arrived.
        chunk: size in bytes of the messages into which longer transfers are cut.

    """

    window: Annotated[int, WINDOW]
    chunk: Annotated[int, CHUNK]

    def __post_init__(self) -> None:
        """Raise ValueError for numbers out of range."""
        for name, quantity in (("window", WINDOW), ("chunk", CHUNK)):
            try:
                quantity.read(getattr(self, name))
            except ValueError as error:
                raise InvalidValueError(error, place=name) from None


NCCL = ClearToSend(window=8, chunk=128 * 1024)
