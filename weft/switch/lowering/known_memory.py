"""What is known of memory within a basic block, so that nothing is loaded that was just loaded or stored.

LLVM would find the same out, but a third of the instructions need not be written, read and optimised then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir


def size_bytes(kind: Any) -> int:
    """What a value of an LLVM type, a pointer or an integer, takes in memory."""
    return 8 if isinstance(kind, ir.PointerType) else (int(kind.width) + 7) // 8


class KnownMemory:
    """Values in the memory that the function's arguments point to, all of them `noalias`, and in what of its own
    `know` names.

    Addresses are a root and a constant offset in bytes from it.
    """

    def __init__(self, arguments: Sequence[Any]) -> None:
        self._roots = {argument for argument in arguments if _is_pointer(argument)}
        self._block: Any = None
        self._values: dict[Any, dict[int, Any]] = {}

    def know(self, memory: Any) -> None:
        """The function's own memory at this address holds integers alone, and is only reached through it and by
        functions that get it.
        """
        self._roots.add(memory)

    def value(self, block: Any, root: Any, offset: int, kind: Any) -> Any | None:
        """The value of type `kind` that a load in `block` would yield; None if that is not known."""
        self._enter(block)
        value = self._values.get(root, {}).get(offset)
        return value if value is not None and value.type == kind else None

    def loaded(self, root: Any, offset: int, value: Any) -> None:
        """In the block last asked about, a load has yielded `value`."""
        if root in self._roots:
            self._values.setdefault(root, {})[offset] = value

    def stored(self, block: Any, root: Any, offset: int, value: Any) -> None:
        """`block` stores `value`."""
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
        """Something was called or written that may have changed anything."""
        self._values.clear()

    def _enter(self, block: Any) -> None:
        if block is not self._block:
            self._block = block
            self.forget()

    def _is_elsewhere(self, address: Any) -> bool:
        """Whether an address lies in what an argument's object points to, so not in that of an argument. The function's
        own memory holds no addresses.
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
