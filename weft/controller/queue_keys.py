"""Queue Keys of aggregation jobs: the secret that all packets of a job carry."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable

QueueKeys = Callable[[int, int], int]
"""Returns the key for a job's id and epoch: 31 bits, not 0.

Keys with the top bit set are privileged (InfiniBand Architecture, volume 1, section 10.2.4).
"""


def random_queue_key(job_id: int, epoch: int) -> int:
    """Draw a key from the operating system's random source; it cannot be derived from the job."""
    return 1 + secrets.randbelow(0x7FFFFFFF)


def repeatable_queue_keys(seed: int) -> QueueKeys:
    """Return keys derived from a seed, so that virtual-clock runs are repeatable; the seed reveals the keys."""

    def key(job_id: int, epoch: int) -> int:
        text = f"{seed}/{job_id}/{epoch}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1 | 1

    return key
