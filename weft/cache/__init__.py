"""The on-disk cache for results of the compiler and the switch, and helpers that speed up producing them."""

from weft.cache.collector import collector_paused, garbage_left_to_parent, set_up_kept
from weft.cache.files import UnreadableFileError, read_bytes, read_text
from weft.cache.store import Store, cache_directory, remove_cache, unusable_because, version_of

__all__ = [
    "Store",
    "UnreadableFileError",
    "cache_directory",
    "collector_paused",
    "garbage_left_to_parent",
    "read_bytes",
    "read_text",
    "remove_cache",
    "set_up_kept",
    "unusable_because",
    "version_of",
]
