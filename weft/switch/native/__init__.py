"""The native switch: programs compiled through LLVM, packets forwarded by the C++ engine."""

from weft.switch.native.switch import NativeSwitch

__all__ = ["NativeSwitch"]
