"""Users' programs of hosts: classes or functions, see `weft.rdma`."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING

from weft.engine import ExtensionError
from weft.traffic.extensions import loading

if TYPE_CHECKING:
    from weft.rdma.device import Device
    from weft.rdma.program import Run


def load_program(spec: loading.ClassSpec) -> Run:
    """Return a program with its parameters given: an `async def` function of a file, or a `weft.rdma.Program`.

    Raises:
        ExtensionError: as `make`, or the function is no `async def`.
    """
    # Imported here, because hosts without programs need none of it.
    from weft.rdma.program import Program

    function = loading.load_function(spec.reference)
    if function is None:
        return loading.make(spec, Program).run  # type: ignore[type-abstract]
    if not inspect.iscoroutinefunction(function):
        raise ExtensionError(f"{spec.reference} is no program: write 'async def {function.__name__}(device)'")
    loading.require_parameters(spec.reference, function, spec.parameters, None)
    return partial(function, **spec.parameters)


async def run_program(spec: loading.ClassSpec, host: str, device: Device) -> None:
    """Load a host's program and run it to its end.

    Raises:
        ExtensionError: it cannot be used, or it has raised, or asked its process to exit.
    """
    what = f"{host} ({spec.reference})"
    with loading.user_code(what), loading.exits_refused(what):
        await load_program(spec)(device)
