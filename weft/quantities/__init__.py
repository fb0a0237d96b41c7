"""Quantities: their notation (`units`), their valid values (`definitions`), and mathematics with the same results on
every processor (`portable_math`).
"""
