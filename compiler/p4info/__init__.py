"""P4Info from the lowered program."""

from compiler.p4info.build import build_p4info

__all__ = ["build_p4info"]
