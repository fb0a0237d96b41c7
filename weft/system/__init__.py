"""The machine below: processes, signals, scratch directories, files that are written whole."""
