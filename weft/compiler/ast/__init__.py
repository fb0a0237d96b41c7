"""The syntax tree of P4_16 (specification, appendix G).

The type checker annotates it: every expression gets its `type` and, when its value is known at compile
time, `value`; a name gets its `declaration`.
"""

from weft.compiler.ast.blocks import *
from weft.compiler.ast.declarations import *
from weft.compiler.ast.expressions import *
from weft.compiler.ast.nodes import *
from weft.compiler.ast.statements import *
from weft.compiler.ast.types import *
