"""What runs a fabric: the real clock (`real/`), the virtual clock (`virtual/`), and what both share."""
