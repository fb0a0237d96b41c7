"""How the methods of a switch that users call reach the controller's event loop, and what their errors say."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from weft.clocks.user_controller.handoff import Handoff
from weft.controller.entities import Entity
from weft.controller.errors import ControllerError, RequestRefusedError, SettingError
from weft.controller.fabric import FabricController
from weft.controller.program_names import ProgramNames
from weft.controller.runtime_entries import runtime_entries
from weft.controller.session import SwitchSession
from weft.errors import BadInputError
from weft.topologies import SwitchSpec

_Result = TypeVar("_Result")
Values = Mapping[str, Any]
"""Values by name: numbers, "10.0.0.1", "02:00:00:00:00:01", [value, length] of a prefix, as in files of entries."""


class SwitchAccess:
    """A switch by its name, and what asks it."""

    def __init__(self, spec: SwitchSpec, controller: FabricController, handoff: Handoff) -> None:
        self.name = spec.name
        self.spec = spec
        self._controller = controller
        self._handoff = handoff

    def __repr__(self) -> str:
        return f"<switch {self.name}>"

    @property
    def _session(self) -> SwitchSession:
        return self._controller.session(self.name)

    @property
    def _names(self) -> ProgramNames:
        return self._session.pipeline.names

    def _put(self, kind: str, tree: Values) -> None:
        """Add what an entry of a file's kind stands for, or change it."""

        async def put() -> None:
            entity = self._entity(kind, tree)
            try:
                await self._controller.write_own(self.name, "modify", entity)
            except SettingError:
                await self._controller.write_own(self.name, "insert", entity)

        self._ask(put, kind)

    def _remove(self, kind: str, entity: Callable[[], Entity]) -> None:
        async def remove() -> None:
            await self._controller.write_own(self.name, "delete", entity())

        self._ask(remove, kind)

    def _entity(self, kind: str, tree: Values) -> Entity:
        (entity,) = runtime_entries({kind: [tree]}, self._names, is_whole=False).entities.values()
        return entity

    def _ask(self, make: Callable[[], Coroutine[Any, Any, _Result]], what: str) -> _Result:
        try:
            return self._handoff.ask(make)
        except (ControllerError, ValueError) as error:
            own = isinstance(error, RequestRefusedError)
            text = str(error) if own else f"{self.name}: {what}: {error}"
        raise BadInputError(text)
