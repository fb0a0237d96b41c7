import pytest

SMALL = """\
name: small
fabric: {planes: 1, leaves: 1, spines: 0, hosts_per_leaf: 3, host_rate: 100Gbps}
traffic:
  - {incast: h0, bytes_per_sender: 8KiB}
"""


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A scenario that runs in no time."""
    path = tmp_path_factory.mktemp("scenario") / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return path


class Recorder:
    """Records the progress that a sweep reports."""

    def __init__(self):
        self.left = None
        self.labels = []

    def begin(self, points, left):
        self.left = left

    def done(self, point, outcome):
        self.labels.append(point.label)


@pytest.fixture
def recorder():
    return Recorder()
