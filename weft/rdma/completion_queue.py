"""Completion queues."""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from typing import TYPE_CHECKING, Any

from weft.rdma.errors import VerbsError
from weft.rdma.work import WC
from weft.visibility import internal

if TYPE_CHECKING:
    from weft.rdma.device import Device
    from weft.rdma.work_queues import WorkQueue

MAX_CQE = 1 << 16


class CQ:
    """A completion queue of `cqe` entries. One that has overrun raises VerbsError wherever it is polled."""

    def __init__(self, device: Device, cqe: int = 256) -> None:
        if not 1 <= cqe <= MAX_CQE:
            raise VerbsError(f"a completion queue of {cqe} entries", valid=f"1 to {MAX_CQE}")
        self.device, self.cqe = device, cqe
        self._entries: deque[tuple[WC, WorkQueue[Any], int]] = deque()
        self._has_overrun = False
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        """Return how many completions wait to be polled."""
        return len(self._entries)

    @internal
    def add(self, completion: WC, queue: WorkQueue[Any], sequence: int) -> None:
        """Note a completion, of a work queue's request of this number."""
        if len(self._entries) == self.cqe:
            self._has_overrun = True
        else:
            self._entries.append((completion, queue, sequence))
        self._arrived.set()

    def poll_now(self, num_entries: int = 1) -> list[WC]:
        """Take out up to so many completions, oldest first, as `ibv_poll_cq` does: it does not wait.

        VerbsError: the queue has overrun, or the number is not above 0.
        """
        if num_entries < 1:
            raise VerbsError(f"{num_entries} completions to poll", valid="1 and more")
        self.device.drain()
        if self._has_overrun:
            raise VerbsError(
                f"the completion queue has overrun its {self.cqe} entries: poll more often, or make it larger",
                errno.EOVERFLOW,
            )
        taken: list[WC] = []
        while self._entries and len(taken) < num_entries:
            completion, queue, sequence = self._entries.popleft()
            queue.retire(sequence)
            taken.append(completion)
        return taken

    async def poll(self, num_entries: int = 1) -> list[WC]:
        """Wait for a completion, and take out up to so many, oldest first. Errors as `poll_now`."""
        with self.device.waiting("a completion"):
            while not (taken := self.poll_now(num_entries)):
                self._arrived.clear()
                await self._arrived.wait()
        return taken
