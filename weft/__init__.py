"""Weft: scenarios, back ends, runs and reports; the `weft` command and its Python API."""
