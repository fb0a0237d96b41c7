"""Warnings: what is legal but surely not meant."""
