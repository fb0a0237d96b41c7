"""Places trees by a hash of the job, as ECMP assigns flows to next hops.

Each pair of switch and job has a hash, and the switch with the lowest one wins (Thaler and Ravishankar, "Using
Name-Based Mappings to Increase Hit Rates", IEEE/ACM Transactions on Networking 6(1), 1998): if a switch fails, only its
trees move.
"""

from __future__ import annotations

import hashlib

from weft.controller.placement.kind import Placement
from weft.controller.tree_load import TreeLoad


def _by_job(load: TreeLoad, job_id: int) -> TreeLoad:
    def order(name: str) -> int:
        return int.from_bytes(hashlib.sha256(f"{job_id}/{name}".encode()).digest()[:8], "big")

    return load.unseen(order)


KIND = Placement(
    name="hash",
    summary="by a hash of the job's id and the switch's name, regardless of load",
    view=_by_job,
)
