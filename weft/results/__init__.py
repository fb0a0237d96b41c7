"""A run's results as data, as tables on the terminal, and as files."""
