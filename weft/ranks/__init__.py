"""Processes as ranks of a fabric: each calls collectives with its own data, one process holds the fabric."""
