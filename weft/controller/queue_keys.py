"""Queue Keys of aggregation jobs: the secret that all packets of a job carry."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable

QueueKeys = Callable[[int, int], int]
"""From a job's id and epoch to its key: 31 bits, not 0.

A key with the top bit set would be a privileged one (InfiniBand Architecture, volume 1, section 10.2.4).
"""


def random_queue_key(job_id: int, epoch: int) -> int:
    """Draw a key from the operating system's randomness; nothing known about the job reveals it."""
    return 1 + secrets.randbelow(0x7FFFFFFF)


def repeatable_queue_keys(seed: int) -> QueueKeys:
    """Derive keys from a seed, so that a virtual-clock run repeats to the byte; anyone with the seed has the keys."""

    def key(job_id: int, epoch: int) -> int:
        text = f"{seed}/{job_id}/{epoch}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1 | 1

    return key
