"""The error of a command that cannot be done."""

from __future__ import annotations

from weft.controller.errors import SettingError


class CommandError(SettingError):
    """A command is unknown, or one of its words is not valid; the message has the word and the valid choices."""
