"""Actions: P4Runtime's Action to the backend's ActionCall and back (§9.1.2)."""

from __future__ import annotations

from collections.abc import Mapping

from finsy.proto import p4i, p4r

from weft.switch.backend import ActionCall
from weft.switch.p4runtime.errors import PERMISSION_DENIED, RequestError, choices, invalid, place
from weft.switch.p4runtime.pipeline import BoundAction
from weft.switch.p4runtime.translation import decode_value, encode_value


def bound_action(actions: Mapping[int, BoundAction], number: int) -> BoundAction:
    """Return the action with this id. INVALID_ARGUMENT if the table does not have it."""
    action = actions.get(number)
    if action is None:
        valid = choices(f"{each.id:#010x} ({each.name})" for each in actions.values())
        raise invalid(f"unknown action id {number:#010x}", valid=valid)
    return action


def decode_action(
    actions: Mapping[int, BoundAction], message: p4r.Action, forbidden_scope: int | None = None
) -> ActionCall:
    """Return the call in `message`; every parameter must be given exactly once.

    PERMISSION_DENIED if the table has the action in `forbidden_scope`.
    """
    action = bound_action(actions, message.action_id)
    if action.scope == forbidden_scope:
        where = "as default action" if action.scope == p4i.ActionRef.DEFAULT_ONLY else "in table entries"
        raise RequestError(PERMISSION_DENIED, f"action {action.name!r} may only be used {where}")
    known = action.parameters_by_id
    values: dict[int, int] = {}
    with place(f"action {action.name!r}"):
        for param in message.params:
            number = param.param_id
            parameter = known.get(number)
            if parameter is None:
                valid = choices(f"{each.id} ({each.name})" for each in action.parameters)
                raise invalid(f"unknown parameter id {number}", valid=valid)
            if number in values:
                raise invalid(f"parameter {parameter.name!r} is given twice")
            try:
                values[number] = decode_value(param.value, parameter)
            except RequestError as error:
                raise RequestError(error.code, error, place=f"parameter {parameter.name!r}") from error
        if len(values) < len(known):
            missing = next(parameter for parameter in action.parameters if parameter.id not in values)
            raise invalid(f"parameter {missing.name!r} is missing")
    return ActionCall(action.name, tuple([values[parameter.id] for parameter in action.parameters]))


def encode_action(actions: Mapping[int, BoundAction], call: ActionCall, message: p4r.Action) -> None:
    """Write a call to `message` in canonical form."""
    action = next(each for each in actions.values() if each.name == call.action)
    message.action_id = action.id
    for parameter, value in zip(action.parameters, call.arguments, strict=True):
        message.params.add(param_id=parameter.id, value=encode_value(value, parameter))
