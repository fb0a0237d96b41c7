"""Frozen descriptions of fabrics and the builders for them."""
