"""Quantities: how people write them (`units`), which values are valid (`definitions`), and mathematics that is the
same on every processor (`portable_math`).
"""
