"""Quantities: how people write them (`units`), and which values are valid (`definitions`)."""
