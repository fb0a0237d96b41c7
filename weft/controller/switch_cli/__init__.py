"""simple_switch_CLI's commands over P4Runtime: `table_add`, `register_read`, `mirroring_add`, `mc_node_create`, …

`CommandSession` runs lines and whole files on one switch. Commands that P4Runtime cannot express are rejected by name.
P4Runtime has no entry handles, so the session assigns them: it numbers a table's entries as they are added or first
seen.
"""

from __future__ import annotations

from weft.controller.errors import CommandError
from weft.controller.switch_cli.commands import COMMANDS
from weft.controller.switch_cli.session import CommandSession, Manage

__all__ = ["COMMANDS", "CommandError", "CommandSession", "Manage"]
