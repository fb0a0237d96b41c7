"""MLCommons Chakra execution traces (schema 1.0), as ASTRA-sim reads and writes them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from weft.cache import collector_paused, read_bytes
from weft.jobs.traces.assembling import JobAssembler
from weft.jobs.traces.chakra.files import SUFFIX, found_files, groups_file, rank_file
from weft.jobs.traces.chakra.process_groups import ProcessGroups
from weft.jobs.traces.chakra.reading import RankReader
from weft.jobs.traces.chakra.writing import group_name, messages_of
from weft.jobs.traces.definition import ReadOptions, Trace, TraceFormat
from weft.jobs.traces.errors import TraceError
from weft.system.writing import written_whole
from weft.traffic.jobs import Job, JobError

MAX_FILE_BYTES = 1 << 31


class Chakra(TraceFormat):
    """Files NAME.RANK.et, one per rank, and NAME.json with the process groups. A path is NAME, a folder or one file."""

    name = "chakra"
    title = "Chakra"
    is_written = True
    options = frozenset({"roofline", "groups"})

    def recognises(self, path: Path) -> bool:
        """Return whether the path names ranks' files."""
        if path.suffix == SUFFIX:
            return True
        folder, start = (path, "") if path.is_dir() else (path.parent, f"{path.name}.")
        return folder.is_dir() and any(
            each.suffix == SUFFIX and each.name.startswith(start) for each in folder.iterdir()
        )

    @collector_paused()
    def read(self, path: Path, options: ReadOptions) -> Trace:
        """Return the job described by all files."""
        files = found_files(path, options.groups)
        job = JobAssembler(files.name)
        groups = ProcessGroups(job, len(files.ranks), files.groups)
        nodes, ignored, callers, launches, transfers = [], Counter[str](), 0, 0, 0
        for rank, file in enumerate(files.ranks):
            reader = RankReader(job, groups, rank, str(file), options)
            job.add_rank(rank, reader.read(read_bytes(file, MAX_FILE_BYTES)), str(file))
            nodes.append(reader.node_ids)
            ignored.update(reader.ignored)
            callers += reader.callers
            launches += reader.launches
            transfers += reader.transfers
        if launches and not transfers:
            raise TraceError(
                f"{launches} nodes of communication are the processor's part alone, and none has a type and a size",
                place=files.ranks[0].parent / files.name,
                valid="traces with the accelerator's kernels, which have comm_type and comm_size",
            )
        try:
            made = job.job()
        except JobError as error:
            raise TraceError(error, place=files.ranks[0].parent / files.name) from None
        return Trace(
            made,
            locate=lambda rank, operation: f"{files.ranks[rank]}: node {nodes[rank][operation]}",
            notes=_notes(ignored, callers, launches),
        )

    def write(self, job: Job, path: Path) -> list[Path]:
        """Write a file for each rank, and one for the process groups, if any; `path` is NAME."""
        if not path.name or path.is_dir():
            raise TraceError("is no prefix of files", place=path, valid="FOLDER/NAME, for files NAME.RANK.et")
        written = [rank_file(path, rank) for rank in range(len(job.parts))]
        for rank, file in enumerate(written):
            with written_whole(file) as partial, open(partial, "wb") as stream:
                stream.writelines(messages_of(job, rank))
        if job.groups:
            ranks = {group_name(number): list(group.ranks) for number, group in enumerate(job.groups)}
            with written_whole(groups_file(path)) as partial:
                partial.write_text(json.dumps(ranks) + "\n", encoding="utf-8")
            written.append(groups_file(path))
        return written


def _notes(ignored: Counter[str], callers: int, launches: int) -> list[str]:
    notes = []
    if ignored:
        shown = ", ".join(f"{name} ({count})" for name, count in ignored.most_common(20))
        notes.append(f"attributes that nothing reads: {shown}")
    if callers:
        notes.append(f"control dependencies on PyTorch's callers, left out: {callers}")
    if launches:
        notes.append(
            f"nodes of communication without type and size, taken as computations of the processor: {launches}"
        )
    return notes
