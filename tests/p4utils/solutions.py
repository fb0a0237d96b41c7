"""The solutions of p4-learning's exercises: how their READMEs run them, and what is seen then."""

from __future__ import annotations

from dataclasses import dataclass

ALL_PINGS = r"Results: 0% dropped"


@dataclass(frozen=True)
class Solution:
    """A solution's network in Mininet.

    Attributes:
        folder: below p4-learning's exercises/, without `/solution`.
        network: its script.
        typed: lines at Mininet's prompt.
        shows: a pattern of what is printed then.
        does: the same in words, as docs/p4-courses.md has it.
    """

    folder: str
    network: str
    typed: tuple[str, ...]
    shows: str
    does: str

    @property
    def name(self) -> str:
        """The folder and, if there are several networks, which."""
        which = self.network.removeprefix("network").removesuffix(".py").strip("_-")
        return f"{self.folder} ({which})" if which else self.folder


def _controlled(folder: str, network: str, typed: str, does: str = "every ping is answered") -> Solution:
    return Solution(folder, network, (typed, "pingall"), ALL_PINGS, does)


def _pings(folder: str, network: str, wait_s: int = 0, does: str = "every ping is answered") -> Solution:
    """A solution that its files, or a script that runs with the network, set up."""
    return Solution(folder, network, (*([f"sh sleep {wait_s}"] if wait_s else []), "pingall"), ALL_PINGS, does)


_SCRIPT_S = 6
"""Time for `execScript`'s controllers, which say nothing when they are done."""
_LEARN = (
    "sh timeout 90 python -u l2_learning_controller.py s1 cpu > learn.log 2>&1 &",
    # The controller has begun once it has written entries; it sniffs a little later.
    "sh timeout 60 sh -c 'until grep -qs ntry learn.log; do sleep 0.2; done'",
    "sh sleep 3",
    "pingall",
    "pingall",
)
_LAST_PINGS = rf"(?s){ALL_PINGS}(?!.*Results)"
_ROUTE = "sh python routing-controller.py"

_RESERVE = (
    "sh printf 'add_reservation h1 h4 60 10 1\\nadd_reservation h4 h1 60 10 1\\nexit\\n' | python rsvp_controller.py",
    "h1 ping -c 2 -W 2 h4",
)
_COUNT = (
    "h2 timeout 60 python receive.py > received.log 2>&1 &",
    "sh sleep 3",
    "h1 python send.py 10.0.2.2 1200 > sent.log 2>&1",
    "sh sleep 4",
    "sh wc -l received.log",
)
_LEARNS = "learns from copies to its port; every ping of a second round is answered"

SOLUTIONS = [
    _pings("02-Repeater/thrift", "network.py"),
    _pings("02-Repeater/thrift", "network_table.py"),
    _pings("02-Repeater/p4runtime", "network.py", _SCRIPT_S),
    _pings("03-L2_Basic_forwarding/thrift", "network.py"),
    _pings("03-L2_Basic_forwarding/p4runtime", "network.py", _SCRIPT_S),
    _pings("03-L2_Flooding/thrift", "network-other-ports.py"),
    _pings("03-L2_Flooding/p4runtime", "network-other-ports.py", _SCRIPT_S),
    Solution("04-L2_Learning/thrift", "network_cpu.py", _LEARN, _LAST_PINGS, _LEARNS),
    Solution("04-L2_Learning/p4runtime", "network_cpu.py", _LEARN, _LAST_PINGS, _LEARNS),
    Solution(
        "04-L2_Learning/p4runtime",
        "network_digest_multi.py",
        (f"sh sleep {_SCRIPT_S}", "pingall", "pingall"),
        _LAST_PINGS,
        "four switches learn from digests; every ping of a second round is answered",
    ),
    _pings("04-MPLS/thrift/mpls_basics", "network.py"),
    _pings("04-MPLS/thrift/mpls_stacked", "network.py"),
    _pings("04-MPLS/p4runtime/mpls_basics", "network.py", _SCRIPT_S),
    _pings("04-MPLS/p4runtime/mpls_stacked", "network.py", _SCRIPT_S),
    Solution("04-RSVP/thrift", "network.py", _RESERVE, " 2 received", "pings pass on two reserved paths"),
    _pings("05-ECMP", "network.py"),
    _pings("05-Flowlet_Switching", "network.py"),
    Solution(
        "06-Heavy_Hitter_Detector",
        "network.py",
        _COUNT,
        r"\b1000 received\.log",
        "of 1,200 packets of a flow, 1,000 arrive",
    ),
    _controlled("08-Simple_Routing/thrift", "network.py", _ROUTE),
    _controlled("08-Simple_Routing/p4runtime", "network.py", _ROUTE),
    _controlled("09-Traceroutable", "network.py", _ROUTE),
    _pings("10-Congestion_Aware_Load_Balancing", "network_simple.py", 2 * _SCRIPT_S),
    _controlled("12-Fast-Reroute", "network.py", "sh echo exit | python controller.py"),
]
NOT_HERE = {
    "01-Reflector": "not tested: its script waits for the return key",
    "04-L2_Learning/thrift (digest)": "does not work: digests over nanomsg",
    "07-Count-Min-Sketch": "pings are answered; the controller is refused: parameters of custom CRCs",
    "11-Packet-Loss-Detection": "does not work: parameters of custom CRCs",
}
"""What does not work, or no test runs, and why."""
