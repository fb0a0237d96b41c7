"""What holds for all tests."""

import signal


def pytest_configure() -> None:
    """Heed what a shell, or nohup, makes background jobs and their children ignore: tests send these signals."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
