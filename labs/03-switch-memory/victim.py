"""An incast, and beside it a flow that has nothing to do with it but the way there."""

from collections.abc import Iterator

import numpy as np

import weft
from weft.topologies import FabricSpec


class IncastAndVictim(weft.TrafficPattern):
    """Hosts of the last leaf write to the first host; its first host, the victim, writes to the second one instead.

    `incast_bytes` a sender (0: the victim is alone) and `victim_bytes`. Needs two leaves with three hosts or more.
    """

    def __init__(self, incast_bytes: int, victim_bytes: int) -> None:
        self.incast_bytes = incast_bytes
        self.victim_bytes = victim_bytes

    def flows(self, fabric: FabricSpec, rng: np.random.Generator) -> Iterator[weft.Flow]:
        """See weft.TrafficPattern."""
        last_leaf = fabric.hosts[-1].nics[0].switch
        senders = [host.index for host in fabric.hosts if host.nics[0].switch == last_leaf]
        if len(senders) < 3 or 0 in senders:
            raise ValueError("an incast and a victim need two leaves with three hosts or more")
        yield weft.Flow(senders[0], 1, self.victim_bytes, plane=0, start_ps=0)
        for sender in senders[1:] if self.incast_bytes else ():
            yield weft.Flow(sender, 0, self.incast_bytes, plane=0, start_ps=0)
