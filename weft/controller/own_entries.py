"""Entities that a user's own controller writes beside Weft's plan, and which of them a switch then holds."""

from __future__ import annotations

from typing import Literal

from finsy.proto import p4r

from weft.controller.errors import SettingError
from weft.controller.reconcile import EncodedEntity, EncodedUpdate, EntitySet

OwnOperation = Literal["insert", "modify", "delete"]


class OwnEntries:
    """By switch. They stay until they are deleted, whatever else is planned anew."""

    def __init__(self) -> None:
        self._by_switch: dict[str, EntitySet] = {}

    def of(self, switch: str) -> EntitySet:
        """Return those of a switch."""
        return self._by_switch.get(switch, {})

    def update(
        self,
        switch: str,
        operation: OwnOperation,
        entity: EncodedEntity,
        installed: EntitySet,
        planned: EntitySet,
    ) -> EncodedUpdate:
        """Return the update that an operation takes, given what a switch holds and what is planned without these.

        Raises:
            SettingError: there is an entity with this key already, or there is none.

        """
        present = entity.key in installed
        if operation == "insert":
            if present:
                raise SettingError("there is one with this key already (modify changes it)")
            return entity.update(p4r.Update.INSERT)
        if operation == "modify":
            if not present and not entity.is_default:
                raise SettingError("there is none with this key (insert adds one)")
            return entity.update(p4r.Update.MODIFY)
        if entity.key not in self.of(switch):
            why = (
                "it is of the scenario's entries, or of Weft's" if present else "there is none with this key"
            )
            raise SettingError(why)
        if entity.key in planned:
            return planned[entity.key].update(p4r.Update.MODIFY)
        return entity.update(p4r.Update.DELETE)

    def note(self, switch: str, operation: OwnOperation, entity: EncodedEntity) -> None:
        """Note what a switch has accepted."""
        own = self._by_switch.setdefault(switch, {})
        if operation == "delete":
            del own[entity.key]
        else:
            own[entity.key] = entity

    def adopt(self, switch: str, held: EntitySet, planned: EntitySet) -> None:
        """Note what a switch holds whose keys are not of the plan."""
        own = self._by_switch.setdefault(switch, {})
        own.update({key: entity for key, entity in held.items() if key not in planned})


def applied(installed: EntitySet, update: EncodedUpdate) -> EntitySet:
    """Return what a switch holds after an update."""
    entity = update.entity
    if update.type == p4r.Update.DELETE:
        return {key: each for key, each in installed.items() if key != entity.key}
    return {**installed, entity.key: entity}
