"""The lowered program: what BMv2 executes, before it is written as JSON.

Expressions are scalars (bit<W>, int<W>, bool); headers, stacks and externs are referred to by name.
Statements are structured; the emitters turn them into primitives, conditionals and parse states.
"""

from weft.compiler.ir.expressions import *
from weft.compiler.ir.program import *
from weft.compiler.ir.statements import *
