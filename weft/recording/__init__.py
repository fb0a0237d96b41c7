"""What a run records beside its results: from probes' columns to named tables, files and traces."""
