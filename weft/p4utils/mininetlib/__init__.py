"""Networks as p4-utils' `network.py` describes them."""
