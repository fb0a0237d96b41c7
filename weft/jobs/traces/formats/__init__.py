"""The formats of traces, one module each."""
