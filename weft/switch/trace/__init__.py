"""Traces of single packets: the events that both switches emit, and their display."""
