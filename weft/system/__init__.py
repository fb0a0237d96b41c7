"""The underlying machine: processes, signals, scratch directories, files that are written atomically."""
