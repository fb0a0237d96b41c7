"""Tracks known values of memory within a basic block, to avoid loads of values just loaded or stored.

LLVM would find the same, but this saves writing, reading and optimising a third of the instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir


def size_bytes(kind: Any) -> int:
    """Return the bytes of a value of an LLVM type, a pointer or an integer, in memory."""
    return 8 if isinstance(kind, ir.PointerType) else (int(kind.width) + 7) // 8


class KnownMemory:
    """Values in the memory that the function's arguments, all `noalias`, point to, and in the function's own memory
    passed to `know`.

    Addresses are a root and a constant offset in bytes from it.
    """

    def __init__(self, arguments: Sequence[Any]) -> None:
        self._roots = {argument for argument in arguments if _is_pointer(argument)}
        self._block: Any = None
        self._values: dict[Any, dict[int, Any]] = {}

    def know(self, memory: Any) -> None:
        """Track the function's own memory at this address. It must hold only integers, and be accessed only through
        this address and by functions that get it.
        """
        self._roots.add(memory)

    def value(self, block: Any, root: Any, offset: int, kind: Any) -> Any | None:
        """Return the value of type `kind` that a load in `block` would yield; None if unknown."""
        self._enter(block)
        value = self._values.get(root, {}).get(offset)
        return value if value is not None and value.type == kind else None

    def loaded(self, root: Any, offset: int, value: Any) -> None:
        """Record that a load in the current block has yielded `value`."""
        if root in self._roots:
            self._values.setdefault(root, {})[offset] = value

    def stored(self, block: Any, root: Any, offset: int, value: Any) -> None:
        """Record that `block` stores `value`."""
        self._enter(block)
        if root not in self._roots:
            if not self._is_elsewhere(root):
                self.forget()
            return
        known = self._values.setdefault(root, {})
        end = offset + size_bytes(value.type)
        for other in [at for at, old in known.items() if at < end and offset < at + size_bytes(old.type)]:
            del known[other]
        known[offset] = value

    def forget(self) -> None:
        """Forget all values, after a call or write that may have changed any memory."""
        self._values.clear()

    def _enter(self, block: Any) -> None:
        if block is not self._block:
            self._block = block
            self.forget()

    def _is_elsewhere(self, address: Any) -> bool:
        """Return whether an address was loaded from an argument's object and so points outside all arguments' objects.
        The function's own memory holds no addresses.
        """
        while isinstance(address, ir.instructions.GEPInstr):
            address = address.pointer
        if not isinstance(address, ir.instructions.LoadInstr):
            return False
        address = address.operands[0]
        while isinstance(address, ir.instructions.GEPInstr):
            address = address.pointer
        return address in self._roots


def _is_pointer(value: Any) -> bool:
    return isinstance(value.type, ir.PointerType)
