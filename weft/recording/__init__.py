"""What a run records besides its results: from probes' columns to named tables, files and traces."""
