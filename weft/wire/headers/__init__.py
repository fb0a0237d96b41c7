"""The headers, one file for those that belong together."""
