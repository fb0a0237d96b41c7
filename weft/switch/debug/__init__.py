"""Debugging of P4 programs by traces: conditions on packets, and their headers at each step."""
