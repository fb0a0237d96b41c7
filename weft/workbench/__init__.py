"""The workbench: scenarios of a folder in the browser, with the commands that run them and show their results."""

DEFAULT_PORT = 9466
"""Port of `weft workbench`."""
