"""Algorithms of MSCCL, as collectives of one algorithm: `path/to/file.xml:COLLECTIVE`."""

from weft.traffic.msccl.collective import msccl_collective

__all__ = ["msccl_collective"]
