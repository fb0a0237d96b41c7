"""Entities that a user's controller writes in addition to Weft's plan, and their effect on a switch's entries."""

from __future__ import annotations

from typing import Literal

from finsy.proto import p4r

from weft.controller.errors import SettingError
from weft.controller.reconcile import EncodedEntity, EncodedUpdate, EntitySet

OwnOperation = Literal["insert", "modify", "delete"]


class OwnEntries:
    """A user's entities by switch; they stay until deleted, even if the plan changes."""

    def __init__(self) -> None:
        self._by_switch: dict[str, EntitySet] = {}

    def of(self, switch: str) -> EntitySet:
        """Return a switch's user entities."""
        return self._by_switch.get(switch, {})

    def update(
        self,
        switch: str,
        operation: OwnOperation,
        entity: EncodedEntity,
        installed: EntitySet,
        planned: EntitySet,
    ) -> EncodedUpdate:
        """Return the update for an operation, given a switch's entities and its plan without user entities.

        Raises:
            SettingError: an entity with this key exists already, or does not exist.

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
            why = "it is of the scenario's entries, or of Weft's" if present else "there is none with this key"
            raise SettingError(why)
        if entity.key in planned:
            return planned[entity.key].update(p4r.Update.MODIFY)
        return entity.update(p4r.Update.DELETE)

    def note(self, switch: str, operation: OwnOperation, entity: EncodedEntity) -> None:
        """Record an operation that a switch has accepted."""
        own = self._by_switch.setdefault(switch, {})
        if operation == "delete":
            del own[entity.key]
        else:
            own[entity.key] = entity

    def adopt(self, switch: str, held: EntitySet, planned: EntitySet) -> None:
        """Record a switch's entities that are not in the plan as the user's."""
        own = self._by_switch.setdefault(switch, {})
        own.update({key: entity for key, entity in held.items() if key not in planned})


def applied(installed: EntitySet, update: EncodedUpdate) -> EntitySet:
    """Return a switch's entities after an update."""
    entity = update.entity
    if update.type == p4r.Update.DELETE:
        return {key: each for key, each in installed.items() if key != entity.key}
    return {**installed, entity.key: entity}
