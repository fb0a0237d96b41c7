"""Traces that are tables: a line for each flow, or for each call of a rank."""
