"""A model whose training step takes a second to emulate packet by packet."""

SMALL_MODEL = {
    "family": "llama",
    "layers": 2,
    "hidden": 1024,
    "heads": 8,
    "kv_heads": 8,
    "feed_forward": 4096,
    "vocabulary": 8192,
    "sequence": 1024,
}
