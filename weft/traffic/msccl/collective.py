"""Makes a collective of an MSCCL algorithm; Weft's collective of that kind checks its results."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from weft.engine import ExtensionError
from weft.traffic.collectives.definition import Algorithm, Collective
from weft.traffic.msccl.ordering import ordered_steps
from weft.traffic.msccl.reading import MscclAlgorithm, read_msccl
from weft.traffic.msccl.schedule import MscclSchedule
from weft.traffic.schedules.spec import CollectiveSpec

_OTHER = re.compile(r"[^a-z0-9_-]+")


@lru_cache(maxsize=8)
def _read(file: str, _changed_ns: int, _size_bytes: int) -> tuple[MscclAlgorithm, MscclSchedule]:
    """Return a file's algorithm; all ranks of a process share it, as long as the file does not change."""
    algorithm = read_msccl(Path(file))
    return algorithm, MscclSchedule(algorithm, ordered_steps(algorithm, file))


def msccl_collective(reference: str, kinds: dict[str, Collective]) -> Collective:
    """Return the collective of `path/to/file.xml:COLLECTIVE`, with one algorithm; `kinds` are Weft's by name.

    Raises ExtensionError for a file that cannot be read, and for one of another collective.
    """
    file, _, wanted = reference.rpartition(":")
    path = Path(file)
    try:
        status = path.stat()
    except OSError as error:
        raise ExtensionError(f"{path} cannot be read: {error.strerror or error}") from None
    algorithm, schedule = _read(file, status.st_mtime_ns, status.st_size)
    if algorithm.collective != wanted:
        raise ExtensionError(f"{path}: this is an algorithm of {algorithm.collective}, not of {wanted}")
    ranks, chunks = len(algorithm.gpus), algorithm.chunks

    def unsuitable(spec: CollectiveSpec) -> str:
        if spec.rank_count != ranks:
            return f"{spec.rank_count} ranks (valid: {ranks}, as the file has)"
        if spec.element_count % chunks:
            return f"{spec.element_count} elements (valid: a multiple of the file's {chunks} chunks)"
        return ""

    kind = type(kinds[wanted])

    def input_elements(self: Collective, size_elements: int, rank_count: int) -> int:
        return kind.input_elements(self, size_elements // chunks * chunks, rank_count)

    own = _OTHER.sub("-", algorithm.name.lower()).strip("-_")[:30]
    made: Collective = type(
        "MscclCollective",
        (kind,),
        {
            "name": f"msccl-{own or wanted}",
            "title": f"{kind.title or wanted} of MSCCL",
            "algorithms": (Algorithm("msccl", schedule, unsuitable),),
            "input_elements": input_elements,
            "least_elements": lambda self, rank_count: chunks,
            "is_same_on_all_ranks": False,
        },
    )()
    return made
