"""Commands, and how they and their answers become messages of docs/spec/endpoint-protocol.md."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar, cast, get_args, get_origin

from weft.traffic.messages import Message, MessageError, as_message, read_message

A = TypeVar("A")
_COMMAND, _NUMBER = "command", "id"


class Command(Generic[A]):
    """A command answered by an A. `name` is its name in the protocol."""

    name: ClassVar[str]

    def __init_subclass__(cls, name: str, *, in_process: bool = False) -> None:
        """Enter the command in `COMMANDS`, unless it only ever comes from a caller in the same process."""
        cls.name = name
        if not in_process:
            COMMANDS[name] = cls


COMMANDS: dict[str, type[Command[Any]]] = {}
"""All commands, by name."""


def command_message(command: Command[Any], number: int) -> dict[str, object]:
    """Return a command in JSON's types; its answer has the number."""
    return {_COMMAND: command.name, _NUMBER: number, **as_message(command)}


def read_command(message: Message) -> Command[Any]:
    """Return the command that a message is. Raises MessageError."""
    name = message.get(_COMMAND)
    if name is None:
        raise MessageError(f"field '{_COMMAND}' is missing", valid=sorted(COMMANDS))
    if not isinstance(name, str) or name not in COMMANDS:
        raise MessageError(f"unknown command {name!r}", valid=sorted(COMMANDS))
    own = {key: value for key, value in message.items() if key not in (_COMMAND, _NUMBER)}
    return read_message(COMMANDS[name], own)


def numbered(message: Message, answer: Message) -> Message:
    """Return an answer with the number of the message that it answers, if that has one."""
    return {**answer, _NUMBER: message[_NUMBER]} if _NUMBER in message else answer


def read_answer(command: Command[A], message: Message) -> A:
    """Return the answer to a command. Raises MessageError."""
    own = {key: value for key, value in message.items() if key != _NUMBER}
    return read_message(_answer_type(type(command)), own)


def _answer_type(kind: type[Command[A]]) -> type[A]:
    (of_command,) = (base for base in vars(kind)["__orig_bases__"] if get_origin(base) is Command)
    (answer,) = get_args(of_command)
    return cast("type[A]", answer)
