"""`load_topo`, with which p4-utils' controllers read the network."""

from __future__ import annotations

import json
import os
from typing import Any

import networkx as nx

from weft.cache.files import UnreadableFileError, read_bytes
from weft.errors import BadInputError
from weft.p4utils.utils.topology import NetworkGraph

_MOST_BYTES = 64 * 1024 * 1024


def load_topo(json_path: str | os.PathLike[str]) -> NetworkGraph:
    """Return the network of the file that a lab writes. Raises BadInputError if it is not such a file."""
    try:
        tree: Any = json.loads(read_bytes(os.fspath(json_path), _MOST_BYTES))
        # Versions of networkx differ in the name of the key.
        graph = nx.node_link_graph({name: value for name, value in tree.items() if name != "edges"}, edges="links")
        return NetworkGraph(graph)
    except OSError as error:
        raise BadInputError(f"{json_path} cannot be read: {error.strerror}; a running lab writes it") from None
    except (UnreadableFileError, ValueError, KeyError, TypeError, AttributeError, RecursionError, nx.NetworkXError):
        raise BadInputError(f"{json_path} is not p4-utils' graph of a network") from None
