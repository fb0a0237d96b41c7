"""Debugging of P4 programs by what their packets do: conditions on packets, their headers at each step."""
