"""The formats of topology files, one module each; each module's `KIND` is all that the rest of Weft uses."""
