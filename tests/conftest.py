"""What holds for all tests."""

import signal


def pytest_configure() -> None:
    """Heed SIGINT, which a shell makes its background jobs ignore, and they their children: tests send it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
