"""Records of a run in addition to its results: from probes' columns to named tables, files and traces."""
