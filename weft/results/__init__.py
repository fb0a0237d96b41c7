"""What a run found, as data, as tables on the terminal, and as files."""
