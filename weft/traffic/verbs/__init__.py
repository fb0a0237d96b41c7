"""Verbs for unmodified programs: what a host's process does for the clients of its NIC."""
