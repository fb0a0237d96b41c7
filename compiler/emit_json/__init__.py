"""BMv2 JSON."""
