"""Warnings: what is legal but surely not meant (`find.find_warnings`)."""
