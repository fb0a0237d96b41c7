"""Finds noisy parts (links, NICs, hosts) by their counters, compared with their peers', and takes them out of use."""
