"""Lowering of a BMv2 JSON program to native code through LLVM.

`lower_program` writes LLVM IR (module `program`), `compile_program` turns it into machine code (module
`jit`). The generated functions work on a packet's state, laid out by `layout`, and access tables, registers
and other objects through the C++ runtime (`engine/switch/abi.hpp`).
"""

from weft.switch.lowering.assumptions import Assumptions
from weft.switch.lowering.errors import UnsupportedError
from weft.switch.lowering.jit import CompiledProgram, compile_program, is_compiled

__all__ = ["Assumptions", "CompiledProgram", "UnsupportedError", "compile_program", "is_compiled"]
