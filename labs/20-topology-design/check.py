"""Goals of the exercise: `weft check FOLDER` looks at design.yaml."""

from weft.exercises import Exercise, Goal, Missing, Work

DESIGN = "design.yaml"
ACCELERATORS, RATE_BPS, BISECTION_GBPS = 1000, 400 * 10**9, 100
PRICE, WATTS = 6200, 110


def accelerators(work: Work) -> None:
    fabric = work.fabric(DESIGN)
    if len(fabric.hosts) < ACCELERATORS:
        raise Missing(f"{DESIGN} has {len(fabric.hosts):,} accelerators")
    for host in fabric.hosts:
        rate_bps = sum(nic.link.rate_bps for nic in host.nics)
        if rate_bps < RATE_BPS:
            raise Missing(f"{host.name} has {rate_bps / 1e9:g} Gb/s")


def bisection(work: Work) -> None:
    found = work.cost(DESIGN).bisection_gbps_per_accelerator
    if found < BISECTION_GBPS:
        raise Missing(f"{DESIGN} has {found:.3g} Gb/s for each accelerator")


def no_single_switch(work: Work) -> None:
    """Two switches of different planes: a link of the same plane would need routes that change the address."""
    for host in work.fabric(DESIGN).hosts:
        switches = {nic.switch for nic in host.nics}
        if len(switches) < 2:
            raise Missing(f"{switches.pop()} is the only switch that {host.name} is at")


def joined(work: Work) -> None:
    """Rails may be apart, if the hosts' scale-up links join them."""
    fabric = work.fabric(DESIGN)
    if not fabric.joins_all_hosts and fabric.scale_up is None:
        raise Missing(f"in {DESIGN} some accelerators have no way to each other")


def price_and_power(work: Work) -> None:
    cost = work.cost(DESIGN)
    if cost.price_per_accelerator > PRICE or cost.watts_per_accelerator > WATTS:
        raise Missing(
            f"{DESIGN} has ${cost.price_per_accelerator:,.0f} and {cost.watts_per_accelerator:.0f} W for each"
        )


EXERCISE = Exercise(
    [
        Goal(
            f"at least {ACCELERATORS:,} accelerators have {RATE_BPS // 10**9} Gb/s each",
            "cp leaf-spine.yaml design.yaml; the rates of a host's NICs in all planes add up",
            accelerators,
        ),
        Goal(
            "each accelerator has a way to all others",
            "links between the leaves of a plane, or ranks_per_host and rails",
            joined,
        ),
        Goal(
            f"bisection bandwidth is at least {BISECTION_GBPS} Gb/s for each accelerator",
            "count a leaf's rate to its hosts and its rate to spines; weft topology show design.yaml",
            bisection,
        ),
        Goal(
            "no switch is the only one of an accelerator",
            "fabric.planes: an accelerator has a NIC in each plane, and each plane has leaves of its own",
            no_single_switch,
        ),
        Goal(
            f"the network is at most ${PRICE:,} and {WATTS} W for each accelerator",
            "weft cost design.yaml: which line of the bill is the largest, and are the ports of its switches in use?",
            price_and_power,
        ),
    ]
)
