"""Files that describe a cluster: Slurm's topology.conf, Kueue's Topology with Kubernetes' nodes."""

from __future__ import annotations

from pathlib import Path

from weft.cache import UnreadableFileError, read_text
from weft.errors import BadInputError
from weft.scheduling.cluster import Cluster
from weft.scheduling.imports.kueue import read_kueue
from weft.scheduling.imports.slurm import read_slurm

_MOST_BYTES = 16 << 20
_YAML = (".yaml", ".yml")
__all__ = ["read_cluster"]


def read_cluster(topology: Path, nodes: Path | None, accelerators_per_host: int | None) -> Cluster:
    """Return the cluster of a file: YAML is Kueue's and needs `nodes`, any other file Slurm's.

    Raises:
        BadInputError: a file cannot be read or used; the message has the place, the value and what is valid.
    """
    if topology.suffix.lower() in _YAML:
        if nodes is None:
            raise BadInputError("is missing: a Topology has no nodes", place="schedule.nodes", valid="a file of them")
        return read_kueue(topology, _text(topology), nodes, _text(nodes), accelerators_per_host)
    if nodes is not None:
        raise BadInputError(
            f"goes with a Topology of Kueue, not with {topology.name}", place="schedule.nodes", valid="leave it out"
        )
    if accelerators_per_host is None:
        raise BadInputError(
            f"is missing: {topology.name} does not say how many a host has",
            place="schedule.accelerators_per_host",
            valid="a number, such as 8",
        )
    return read_slurm(topology, _text(topology), accelerators_per_host)


def _text(path: Path) -> str:
    try:
        return read_text(path, _MOST_BYTES)
    except UnreadableFileError as error:
        raise BadInputError(error) from None
    except OSError as error:
        raise BadInputError(f"cannot be read: {error.strerror}", place=path) from None
    except UnicodeDecodeError:
        raise BadInputError("is not UTF-8 text", place=path) from None
