"""A session of commands on one switch: runs lines and files, and keeps the meaning of handles."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from finsy.proto import p4i, p4r

from weft.cache.files import UnreadableFileError, read_text
from weft.controller.errors import CommandError, ControllerError
from weft.controller.reconcile import EncodedEntity, EncodedUpdate
from weft.controller.session import BATCH_UPDATES, SwitchSession
from weft.controller.switch_cli.commands import named
from weft.errors import translated

Manage = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends a request of `management` and returns the answer."""

MAX_FILE_BYTES = 16 * 1024 * 1024
_MOST_CHARACTERS = 16_384
_COMMENTS = ("#", "//")
"""simple_switch_CLI reports `//` as unknown and continues, so its users' files have both."""


class CommandSession:
    """Runs commands on a switch.

    `before_writing` is awaited before the first write. With `retakes` it is awaited again before a write after another
    client has become primary.

    Attributes:
        handles: handles of each table's entries, by the entries' keys; see `handle_of`.
        nodes: multicast nodes by handle, each with its instance and ports.
        node_lags: the lags of each node; BMv2 uses one port of each lag.
        associated: the groups of each node.
        lags: the ports of each lag.
        mirrored: multicast group that a clone session sends to.
        rates: direct-meter rates for future entries, by table.
        manage: sends requests that P4Runtime lacks; None if the switch supports none.
        may_write_files: whether commands may write files on this machine. Scenarios may come from untrusted sources, so
            their commands may not.

    """

    def __init__(
        self,
        switch: SwitchSession,
        ports: Sequence[str] = (),
        before_writing: Callable[[], Awaitable[Any]] | None = None,
        manage: Manage | None = None,
        *,
        may_write_files: bool = True,
        retakes: bool = False,
    ) -> None:
        self.switch = switch
        self.ports = ports
        self.handles: dict[int, dict[bytes, int]] = {}
        self.nodes: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.node_lags: dict[int, tuple[int, ...]] = {}
        self.associated: dict[int, set[int]] = {}
        self.lags: dict[int, tuple[int, ...]] = {}
        self.mirrored: dict[int, int] = {}
        self.rates: dict[int, p4r.MeterConfig] = {}
        self.manage = manage
        self.may_write_files = may_write_files
        self._before_writing = before_writing
        self._has_taken_over = False
        self._retakes = retakes

    @property
    def info(self) -> p4i.P4Info:
        """The program's P4Info."""
        return self.switch.pipeline.p4info

    async def run(self, line: str) -> str:
        """Run a command and return its output; empty for an empty line or a comment.

        Raises:
            CommandError: the line is invalid; names the command, the word and the valid choices.
            ControllerError: the switch rejects a request.

        """
        words = _words(line)
        if not words:
            return ""
        found = named(words[0])
        try:
            found.require_words(words[1:])
            return await found.run(self, words[1:])
        except CommandError as error:
            raise CommandError(error, place=found.name) from None
        except ControllerError as error:
            raise type(error)(f"{found.name}: {error}") from None

    async def run_file(self, path: Path) -> list[str]:
        """Run a file's commands in order until one fails, and return their outputs.

        Raises:
            CommandError: the file is unreadable, or a line is invalid or rejected; names the file and the line.

        """
        try:
            text = read_text(path, MAX_FILE_BYTES)
        except UnreadableFileError as error:
            raise CommandError(error) from None
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise CommandError(f"{path} is not UTF-8 text: {error}") from None
        said = []
        for number, line in enumerate(text.splitlines(), 1):
            with translated(ControllerError, CommandError, place=f"{path}, line {number}"):
                output = await self.run(line)
            if output:
                said.append(output)
        return said

    async def take_over(self) -> None:
        """Do what comes before the first write, unless it is done and holds."""
        if self._before_writing is None or (self._has_taken_over and (self.switch.is_primary or not self._retakes)):
            return
        await self._before_writing()
        self._has_taken_over = True

    async def reload(self) -> None:
        """Load the running program again, which empties tables, registers, counters, groups and clone sessions."""
        await self.take_over()
        await self.switch.reload_program()
        self.forget()

    def forget(self) -> None:
        """Forget handles, nodes and lags, because the switch has lost its entries and groups."""
        self.handles.clear()
        self.nodes.clear()
        self.node_lags.clear()
        self.associated.clear()
        self.lags.clear()
        self.mirrored.clear()
        self.rates.clear()

    async def write(self, kind: p4r.Update.Type.ValueType, **entity: Any) -> None:
        """Send one update; `entity` is a field of `p4.v1.Entity` with its message."""
        await self.write_all(kind, [p4r.Entity(**entity)])

    async def write_all(self, kind: p4r.Update.Type.ValueType, entities: Iterable[p4r.Entity]) -> None:
        """Send updates of one kind in order; those before the first rejected one take effect."""
        await self.take_over()
        left = iter(entities)
        while batch := list(itertools.islice(left, BATCH_UPDATES)):  # an array may have millions of cells
            encoded = (EncodedEntity(("", b""), each.SerializeToString(), 0, False) for each in batch)
            await self.switch.write([EncodedUpdate(kind, each) for each in encoded])

    async def read(self, **entity: Any) -> list[p4r.Entity]:
        """Read the entities that a wildcard selects."""
        return await self.switch.read_raw([p4r.Entity(**entity)])

    async def entries(self, table: p4i.Table) -> list[p4r.TableEntry]:
        """Return a table's entries without the default entry, in order of their handles."""
        query = p4r.TableEntry(table_id=table.preamble.id)
        if table.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL:
            query.time_since_last_hit.SetInParent()
        found = await self.read(table_entry=query)
        entries = [each.table_entry for each in found if not each.table_entry.is_default_action]
        return sorted(entries, key=self.handle_of)

    def handle_of(self, entry: p4r.TableEntry) -> int:
        """Return an entry's handle; a new entry gets the next number of its table."""
        handles = self.handles.setdefault(entry.table_id, {})
        key = key_of(entry)
        if key not in handles:
            # The last handle is the largest, because handles are added in order.
            handles[key] = 1 + (handles[next(reversed(handles))] if handles else -1)
        return handles[key]

    async def entry(self, table: p4i.Table, handle: int) -> p4r.TableEntry:
        """Return the entry with a handle. Raises CommandError if there is none."""
        entries = await self.entries(table)
        for each in entries:
            if self.handle_of(each) == handle:
                return each
        choices = ", ".join(str(self.handle_of(each)) for each in entries[:8]) or "none; the table is empty"
        raise CommandError(f"no entry of {table.preamble.name} has the handle {handle}", valid=choices)


def key_of(entry: p4r.TableEntry) -> bytes:
    """Return the key that identifies an entry in its table."""
    matches = sorted(entry.match, key=lambda each: each.field_id)
    return bytes(p4r.TableEntry(match=matches, priority=entry.priority).SerializeToString(deterministic=True))


def _words(line: str) -> list[str]:
    if len(line) > _MOST_CHARACTERS:
        raise CommandError(f"the line has {len(line)} characters", valid=f"at most {_MOST_CHARACTERS}")
    stripped = line.strip()
    if stripped.startswith(_COMMENTS):
        return []
    try:
        return shlex.split(stripped, comments=False)
    except ValueError as error:
        raise CommandError(error, place=f"{stripped[:80]!r}") from None
