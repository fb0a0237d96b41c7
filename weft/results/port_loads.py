"""How busy each port was, from the counters of a run's table `ports`."""

from __future__ import annotations

import numpy as np

from weft.recording.tables import Table, integers_of, names_of


def port_loads(ports: Table, traffic_ps: int) -> dict[str, float]:
    """Return the share of the traffic's time in which each port was sending, by its name; {} without traffic.

    A port that does not report its bytes (BMv2's) counts as idle.
    """
    if not traffic_ps:
        return {}
    sent = np.maximum(0, integers_of(ports, "transmitted_bytes")) * 8.0
    could = integers_of(ports, "rate_bps") * (traffic_ps * 1e-12)
    shares = np.divide(sent, could, out=np.zeros(len(sent)), where=could > 0)
    return dict(zip(names_of(ports, "port").texts().tolist(), shares.tolist(), strict=True))
