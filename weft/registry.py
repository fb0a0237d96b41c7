"""Registries of kinds, each defined by one module of a package: a new file in the package is found automatically."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from types import ModuleType
from typing import Generic, TypeVar

from weft.errors import Refusal

_Kind = TypeVar("_Kind")


class Registry(Mapping[str, _Kind], Generic[_Kind]):
    """The kinds that a package's modules define, by name, in order of the modules' names.

    Args:
        package: its modules are searched when a kind is first requested.
        what: term for a kind, for messages.
        kinds_in: returns the names and kinds that a module defines.
        error: raised for an unknown name.
        default: name of the kind listed first.
        besides: other valid values in place of a name, for messages.

    """

    def __init__(
        self,
        package: str,
        what: str,
        kinds_in: Callable[[ModuleType], Iterable[tuple[str, _Kind]]],
        error: type[Refusal],
        *,
        default: str | None = None,
        besides: str | None = None,
    ) -> None:
        self._package = package
        self._what = what
        self._kinds_in = kinds_in
        self._error = error
        self._default = default
        self._besides = besides

    @cached_property
    def _kinds(self) -> dict[str, _Kind]:
        found = dict(each for module in _modules_of(self._package) for each in self._kinds_in(module))
        return found if self._default is None else {self._default: found.pop(self._default), **found}

    def look_again(self) -> None:
        """Search the package again when a kind is next requested."""
        importlib.invalidate_caches()
        self.__dict__.pop("_kinds", None)

    def named(self, name: object) -> _Kind:
        """Return a kind by name. Raises the registry's error, which lists the valid names."""
        if isinstance(name, str) and name in self._kinds:
            return self._kinds[name]
        valid = [*self._kinds, *([self._besides] if self._besides else [])]
        raise self._error(f"unknown {self._what} {name!r}", valid=valid)

    def __getitem__(self, name: str) -> _Kind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


class NamedByModules(Registry[_Kind]):
    """A registry of kinds that are named like their modules, each of which is imported when its kind is requested.

    `without_kind` are the modules that define none.
    """

    def __init__(
        self,
        package: str,
        what: str,
        kinds_in: Callable[[ModuleType], Iterable[tuple[str, _Kind]]],
        error: type[Refusal],
        *,
        default: str | None = None,
        without_kind: Collection[str] = (),
    ) -> None:
        super().__init__(package, what, kinds_in, error, default=default)
        self._without_kind = without_kind
        self._imported: dict[str, _Kind] = {}

    @cached_property
    def _names(self) -> dict[str, str]:
        """The modules by the names of their kinds."""
        modules = {name.rpartition(".")[2]: name for name in _module_names(self._package)}
        kinds = {kind: module for kind, module in modules.items() if kind not in self._without_kind}
        return kinds if self._default is None else {self._default: kinds.pop(self._default), **kinds}

    def look_again(self) -> None:
        """See Registry."""
        super().look_again()
        self.__dict__.pop("_names", None)
        self._imported.clear()

    def named(self, name: object) -> _Kind:
        """See Registry."""
        if isinstance(name, str) and name in self._names:
            return self[name]
        raise self._error(f"unknown {self._what} {name!r}", valid=self._names)

    def __getitem__(self, name: str) -> _Kind:
        if name not in self._imported:
            found = dict(self._kinds_in(importlib.import_module(self._names[name])))
            if found.keys() != {name}:
                defined = ", ".join(sorted(found)) or "none"
                raise TypeError(f"{self._names[name]} defines the {self._what} {defined} (valid: {name}, its own name)")
            self._imported |= found
        return self._imported[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def constant_of(kind: type[_Kind]) -> Callable[[ModuleType], Iterable[tuple[str, _Kind]]]:
    """Return a function that finds a module's `KIND` of this class, with its `name`."""

    def kinds_in(module: ModuleType) -> Iterator[tuple[str, _Kind]]:
        found = getattr(module, "KIND", None)
        if isinstance(found, kind):
            yield found.name, found  # type: ignore[attr-defined]

    return kinds_in


def classes_of(base: type[_Kind], module: ModuleType) -> Iterator[type[_Kind]]:
    """Yield the non-abstract classes that a module itself derives from `base`."""
    for value in vars(module).values():
        if not inspect.isclass(value) or value.__module__ != module.__name__ or inspect.isabstract(value):
            continue
        if issubclass(value, base) and value is not base:
            yield value


def _modules_of(package: str) -> Iterator[ModuleType]:
    """Import the modules of a package and yield them, in order of their names."""
    yield from map(importlib.import_module, _module_names(package))


def _module_names(package: str) -> list[str]:
    path = importlib.import_module(package).__path__
    return sorted(module.name for module in pkgutil.iter_modules(path, f"{package}."))
