"""P4Info from the lowered program, and the entries that it lists."""

from weft.compiler.p4info.build import build_p4info
from weft.compiler.p4info.entries import initial_entries

__all__ = ["build_p4info", "initial_entries"]
