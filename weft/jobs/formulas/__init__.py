"""Closed forms of a training step: parameters, memory, floating-point operations and bytes, each with its source."""
