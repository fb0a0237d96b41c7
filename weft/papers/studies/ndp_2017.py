"""NDP: a 431-to-1 incast and a permutation of 432 hosts over switches that trim, with receivers that grant credit."""

from __future__ import annotations

from typing import Any

from weft.papers.flow_times import FlowTimes
from weft.papers.study import Findings, Scale, Setting, Shape, Study, Value
from weft.papers.trees import listed_flows, virtual
from weft.results.report_parts import Axis, Curve, CurveFigure
from weft.trials import Procedure, Trial

_RATE_BPS = 10e9
_INCAST_BYTES = 450_000
_PERMUTATION_BYTES = 4_000_000
_TIMEOUTS = {"incast": "1ms", "permutation": "50ms"}
"""As the authors set the least timeout in main_ndp_incast_shortflows.cpp and main_ndp_permutation.cpp."""
_AUTHORS_DATA = "the authors' repository, nets-cs-pub-ro/NDP"
_INCAST = f"figure 16; {_AUTHORS_DATA}, incast_shortflows"
_PERMUTATION = f"figure 14; {_AUTHORS_DATA}, permutation"
_WITHOUT_CREDIT = (
    "a turn of the receiver's credit takes 1.4 ms with 431 senders (4 KiB each), longer than the authors' timeout of 1 "
    "ms, after which a sender of Ultra Ethernet sends a packet without credit; switches trim 8,253 packets. With a "
    "timeout of 20 ms they trim 1,991, and the last flow ends at 1.05. Packets also carry 98 bytes of headers with "
    "4,096 of data, those of htsim 64 with 9,000."
)
_BOTH = (Scale.FULL, Scale.REDUCED)


def _tree(ports: int, traffic: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return virtual(
        "ndp-2017",
        mtu=4096,
        fabric={"k": ports, "planes": 1, "host_rate": "10Gb/s", "delay": "1us", **keys.pop("memory")},
        observe={"flows": True},
        traffic=[traffic],
        **keys,
    )


def _trimming(ports: int, traffic: dict[str, Any], timeout: str) -> dict[str, Any]:
    # Eight packets of 9 KB, as the authors' queues.
    return _tree(
        ports,
        traffic,
        memory={"queue_capacity": "72KB"},
        trimming={"classes": [3]},
        transport={"protocol": "uet", "receiver_credits": True, "retransmission_timeout": timeout},
    )


def _single_path(ports: int, traffic: dict[str, Any]) -> dict[str, Any]:
    # A hundred packets of 9 KB; marks from 65 packets of 1,500 bytes on, as DCTCP's authors set switches at 10 Gb/s.
    return _tree(
        ports,
        traffic,
        memory={"queue_capacity": "900KB"},
        ecn={"kmin": 97_500, "kmax": 97_501, "pmax": 1.0},
        transport={"congestion_control": "dctcp"},
    )


def _procedure(setting: Setting) -> Procedure[Findings]:
    ports = 12 if setting.is_full else 6
    hosts = ports**3 // 4
    permutation = {"permutation": _PERMUTATION_BYTES, "data": "lengths"}
    incast = listed_flows([host, 0, _INCAST_BYTES] for host in range(1, hosts))
    incast_run, trimmed_run, single_run = yield [
        Trial(f"{hosts - 1}-to-1 incast, trimming", _trimming(ports, incast, _TIMEOUTS["incast"])),
        Trial("permutation, trimming", _trimming(ports, permutation, _TIMEOUTS["permutation"])),
        Trial("permutation, DCTCP", _single_path(ports, permutation)),
    ]
    ends_s = FlowTimes.of_run(incast_run).completion_ps / 1e12
    ideal_s = (hosts - 1) * _INCAST_BYTES * 8 / _RATE_BPS
    shares = {
        name: FlowTimes.of_run(run).goodputs_bps() / _RATE_BPS
        for name, run in (("trimming, receivers' credit", trimmed_run), ("DCTCP, one path", single_run))
    }
    trimmed, single = shares.values()
    measured = {
        "incast, last over ideal": float(ends_s.max() / ideal_s),
        "incast, first over last": float(ends_s.min() / ends_s.max()),
        "permutation, mean": float(trimmed.mean()),
        "permutation, slowest": float(trimmed.min()),
        "permutation, DCTCP": float(single.mean()),
    }
    figure = CurveFigure(
        f"Permutation of {hosts} hosts",
        Axis("host, by rank of its goodput"),
        Axis("share of the link"),
        [Curve(name, list(range(hosts)), sorted(each.round(4).tolist())) for name, each in shares.items()],
    )
    return Findings(measured, figures=[figure])


KIND = Study(
    name="ndp-2017",
    title="Re-architecting Datacenter Networks and Stacks for Low Latency and High Performance",
    authors="Handley et al.",
    venue="SIGCOMM",
    year=2017,
    measured=(
        "In htsim, on a fat tree of 432 hosts at 10 Gb/s whose switches have queues of eight packets and trim: an "
        "incast of 450 KB from each host to one, and a permutation, compared with DCTCP over single paths."
    ),
    run=(
        "The same fat tree and sizes with what Weft has of NDP's ideas: switches trim, packets are sprayed, and "
        "receivers grant credit (Ultra Ethernet, RUD with receiver_credits), with the authors' least timeouts. Packets "
        "carry 4,096 bytes, not 9,000."
    ),
    reduced="54 hosts.",
    procedure=_procedure,
    values=[
        Value(
            "incast, last over ideal",
            "431-to-1 incast: last flow over the receiver's link alone",
            0.156377 / 0.15516,
            "",
            _INCAST,
            0.05,
            when=_BOTH,
            explanation=_WITHOUT_CREDIT,
        ),
        Value(
            "incast, first over last",
            "431-to-1 incast: first flow's time over the last's",
            0.145869 / 0.156377,
            "",
            _INCAST,
            0.1,
            explanation=_WITHOUT_CREDIT,
        ),
        Value(
            "permutation, mean",
            "permutation: mean share of the link",
            0.924928,
            "",
            _PERMUTATION,
            0.05,
            explanation=("NSCC, which works besides the credit, takes the queues of sprayed packets for congestion."),
        ),
        Value(
            "permutation, slowest",
            "permutation: share of the slowest host",
            0.88488,
            "",
            _PERMUTATION,
            0.1,
            explanation="as for the mean.",
        ),
        Value(
            "permutation, DCTCP",
            "permutation: mean share with DCTCP over one path",
            0.466788,
            "",
            _PERMUTATION,
            0.15,
            explanation="flows end: those that share a link have it alone once the faster ones have ended.",
        ),
    ],
    shapes=[
        Shape(
            "trimming with receivers' credit fills the permutation's links far better than single paths",
            "figure 14",
            lambda measured: measured["permutation, mean"] > 1.3 * measured["permutation, DCTCP"],
        ),
        Shape(
            "all flows of the incast end close together (the first after 80 % of the last's time)",
            "figure 16",
            lambda measured: measured["incast, first over last"] > 0.8,
            _WITHOUT_CREDIT,
        ),
    ],
)
