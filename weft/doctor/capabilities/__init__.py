"""The capabilities that `weft doctor` looks for; a module for each part of a machine."""
