"""The error of a command that cannot be executed."""

from __future__ import annotations

from weft.controller.errors import SettingError


class CommandError(SettingError):
    """A command is unknown or a word is invalid; the message has the word and the valid choices."""
