"""Programs by the names of p4lang's tools, for exercises and courses that call them.

`weft shims DIR` (`writing`) makes a folder of launchers; each starts a module of this package, or a Weft command.
"""
