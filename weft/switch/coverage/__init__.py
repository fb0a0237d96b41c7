"""Coverage of P4 programs: which lines, branches, actions, parser states and entries packets have reached."""
