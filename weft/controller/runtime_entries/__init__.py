"""Entries from users' files, in the schema of p4lang's tutorials, checked against P4Info."""

from weft.controller.runtime_entries.content import EntriesSettings, RuntimeEntries, runtime_entries
from weft.controller.runtime_entries.tables import table_entry

__all__ = ["EntriesSettings", "RuntimeEntries", "runtime_entries", "table_entry"]
