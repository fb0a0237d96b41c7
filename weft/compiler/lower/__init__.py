"""From the checked tree to what BMv2 executes.

Functions take a `Context`: the program so far, and where in it we are. Expressions and statements contain each other,
so `dispatch` finds the function for a node in the table of `handlers`; all other dependencies are imports.
"""
