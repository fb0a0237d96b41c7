"""The on-disk cache that the compiler and the switch keep their results in, and what speeds up making these."""

from cache.collector import collector_paused
from cache.store import Store, cache_directory, remove_cache, version_of

__all__ = ["Store", "cache_directory", "collector_paused", "remove_cache", "version_of"]
