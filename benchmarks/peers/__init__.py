"""Other simulators on the same work as Weft: the same flows, topology and parameters, in one run.

A `Work` is a scenario of Weft's and a list of flows. An adapter (one module in peers/adapters) writes both in the
formats of its simulator, runs the program that the user names by an environment variable, and reads when each flow
ended. `weft_side` does the same with `weft run`.
"""

from peers.agreement import Agreement, agreement, slowdowns
from peers.commands import Spent, measured
from peers.peer import MissingPeerError, Peer, PeerRun, UnfitWorkError
from peers.registry import PEERS
from peers.weft_side import run_weft
from peers.work import Work

__all__ = [
    "PEERS",
    "Agreement",
    "MissingPeerError",
    "Peer",
    "PeerRun",
    "Spent",
    "UnfitWorkError",
    "Work",
    "agreement",
    "measured",
    "run_weft",
    "slowdowns",
]
