"""NCCL's own choice of algorithm, protocol and channels, from version 2.30.7 of its source."""

from __future__ import annotations

from weft.traffic.nccl.cluster import Cluster, Generation, NcclSettings, Vendor
from weft.traffic.nccl.model import FUNCTIONS, NCCL_VERSION, NcclChoice, Times, nccl_choice, nccl_times

__all__ = [
    "FUNCTIONS",
    "NCCL_VERSION",
    "Cluster",
    "Generation",
    "NcclChoice",
    "NcclSettings",
    "Times",
    "Vendor",
    "nccl_choice",
    "nccl_times",
]
