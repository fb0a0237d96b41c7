"""Actions: P4Runtime's Action to the backend's ActionCall and back (§9.1.2)."""

from __future__ import annotations

from collections.abc import Mapping

from finsy.proto import p4r

from switch.backend import ActionCall
from switch.p4runtime.errors import choices, invalid, place
from switch.p4runtime.pipeline import BoundAction
from switch.p4runtime.values import decode, encode


def bound_action(actions: Mapping[int, BoundAction], number: int) -> BoundAction:
    """The action with this id. INVALID_ARGUMENT if the table does not have it."""
    action = actions.get(number)
    if action is None:
        valid = choices(f"{each.id:#010x} ({each.name})" for each in actions.values())
        raise invalid(f"unknown action id {number:#010x} ({valid})")
    return action


def decode_action(actions: Mapping[int, BoundAction], message: p4r.Action) -> ActionCall:
    """The call that `message` asks for; every parameter must be given exactly once."""
    action = bound_action(actions, message.action_id)
    with place(f"action {action.name!r}"):
        known = {parameter.id: parameter for parameter in action.parameters}
        values: dict[int, int] = {}
        for param in message.params:
            parameter = known.get(param.param_id)
            if parameter is None:
                valid = choices(f"{each.id} ({each.name})" for each in action.parameters)
                raise invalid(f"unknown parameter id {param.param_id} ({valid})")
            if param.param_id in values:
                raise invalid(f"parameter {parameter.name!r} is given twice")
            with place(f"parameter {parameter.name!r}"):
                values[param.param_id] = decode(param.value, parameter.width_bits)
        missing = [parameter.name for parameter in action.parameters if parameter.id not in values]
        if missing:
            raise invalid(f"parameter {missing[0]!r} is missing")
        return ActionCall(action.name, tuple(values[parameter.id] for parameter in action.parameters))


def encode_action(actions: Mapping[int, BoundAction], call: ActionCall) -> p4r.Action:
    """The canonical message of a call."""
    action = next(each for each in actions.values() if each.name == call.action)
    message = p4r.Action(action_id=action.id)
    for parameter, value in zip(action.parameters, call.arguments, strict=True):
        message.params.add(param_id=parameter.id, value=encode(value))
    return message
