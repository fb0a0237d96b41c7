"""simple_switch_CLI's commands over P4Runtime: `table_add`, `register_read`, `mirroring_add`, `mc_node_create`, …

`CommandSession` runs lines and whole files on one switch. What P4Runtime cannot do is refused by name. Entry handles,
which P4Runtime does not have, are numbers of the session: entries count up, per table, as they are added or first seen.
"""

from __future__ import annotations

from weft.controller.switch_cli.commands import COMMANDS
from weft.controller.switch_cli.errors import CommandError
from weft.controller.switch_cli.session import CommandSession, Manage

__all__ = ["COMMANDS", "CommandError", "CommandSession", "Manage"]
