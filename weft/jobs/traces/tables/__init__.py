"""Traces in tables, with a line for each flow or for each call of a rank."""
