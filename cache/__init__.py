"""The on-disk cache that the compiler and the switch keep their results in."""

from cache.store import Store, cache_directory, remove_cache, version_of

__all__ = ["Store", "cache_directory", "remove_cache", "version_of"]
