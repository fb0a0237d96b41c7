"""Coverage of P4 programs: the lines, branches, actions, parser states and entries reached by packets."""
