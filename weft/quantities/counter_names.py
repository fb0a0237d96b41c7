"""Counters of Weft's P4 programs that both the controller and the switches' daemon read."""

ECN_MARKED = "ecn_marked"
"""Packets marked (CE), by egress port (p4/include/ecn.p4)."""
