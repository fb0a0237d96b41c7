"""The oracle: a plain interpreter of BMv2 programs, with which the compiled switch is compared.

It follows behavioral-model's documents closely and is not written to be fast.
"""

from weft.switch.oracle.switch import OracleSwitch, Output, Timing

__all__ = ["OracleSwitch", "Output", "Timing"]
