"""Hand-written recursive descent for P4_16: functions over a `TokenStream`."""

# Those that nothing else needs are imported for the rules that they register.
from weft.compiler.parser import branches, loops, primaries  # noqa: F401
from weft.compiler.parser.program import parse_program

__all__ = ["parse_program"]
