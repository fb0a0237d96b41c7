"""Topology files: one module for each format, the graph that they share, and the writer."""

from __future__ import annotations

from weft.topologies.files.reading import FORMATS, read_graph

__all__ = ["FORMATS", "read_graph"]
