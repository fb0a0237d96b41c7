"""Warnings: what is legal but surely a mistake (`find.find_warnings`)."""
