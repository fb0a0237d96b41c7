"""Run a fabric: the real clock (`real/`), the virtual clock (`virtual/`), and their common parts."""
