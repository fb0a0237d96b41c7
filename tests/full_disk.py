"""A limit on the size of files, which stands for a full disk."""

import contextlib
import resource
import sys

# Python 3.11 keeps bytecode that it could write but a part of, and later fails to read it.
WITHOUT_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}


@contextlib.contextmanager
def files_limited_to(size_bytes):
    """Limit the files that this process writes."""
    before, wrote_none = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = wrote_none
