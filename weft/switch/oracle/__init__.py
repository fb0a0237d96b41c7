"""The oracle: a plain interpreter of BMv2 programs, against which the compiled switch is compared.

It is written to be read beside behavioral-model's documents, not to be fast.
"""

from weft.switch.oracle.switch import OracleSwitch, Output, Timing

__all__ = ["OracleSwitch", "Output", "Timing"]
