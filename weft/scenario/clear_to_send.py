"""Section of a collective on receiver-driven admission."""

from __future__ import annotations

from typing import Annotated

from weft.scenario.values import Section
from weft.traffic.clear_to_send import CHUNK, NCCL, WINDOW, ClearToSend


class ClearToSendSection(Section):
    """How much receivers clear; `{}` for the defaults, which are NCCL's."""

    window: Annotated[int, WINDOW] = NCCL.window
    """Messages of a channel that are cleared and have not arrived."""
    chunk: Annotated[int, CHUNK] = NCCL.chunk
    """Longer transfers are cut into messages of so many bytes, each of which is cleared. Transfers of algorithms
    whose schedules are graphs stay whole: `recursive-doubling`, `pat`, `direct` and `binomial` gathers and scatters,
    `hierarchical` all-to-alls, all-to-all-v, dispatches, MSCCL's and your own."""

    def settings(self) -> ClearToSend:
        """Return the hosts' settings."""
        return ClearToSend(self.window, self.chunk)
