"""Disaggregated inference: prefill instances compute prompts and send KV caches to decode instances."""
