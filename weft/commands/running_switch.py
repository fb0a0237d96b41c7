"""Finding a switch that runs: by its name in the lab of this machine, or by its address."""

from __future__ import annotations

from weft.clocks.real import lab_state
from weft.errors import BadInputError, EnvironmentLacksError
from weft.hints import did_you_mean

EMBEDDED = "embedded"


def find_running_switch(name: str, device_id: int) -> tuple[str, int, str]:
    """Return a switch's P4Runtime address, device id and target (EMBEDDED where only an address is given).

    `name` is a switch of the running lab, or HOST:PORT or unix:PATH; `device_id` belongs to these two.

    Raises:
        BadInputError: the lab has no such switch. EnvironmentLacksError: no lab runs.
    """
    host, separator, number = name.rpartition(":")
    if name.startswith("unix:") or (separator and host and number.isdecimal()):
        return name, device_id, EMBEDDED
    state = lab_state.load()
    if state is None or not state.grpc:
        raise EnvironmentLacksError(
            "no lab runs on this machine: start one with `weft lab SCENARIO`, or name a switch by HOST:PORT or "
            "unix:PATH"
        )
    if name not in state.grpc:
        raise BadInputError(f"unknown switch '{name}'; {did_you_mean(name, state.grpc)}")
    return *state.grpc[name], state.target
