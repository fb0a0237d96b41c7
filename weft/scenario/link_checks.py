"""What a scenario says about links, held to its fabric before anything is built."""

from __future__ import annotations

from weft.errors import BadInputError
from weft.scenario import KeyProblem
from weft.scenario.options import FabricOptions
from weft.topologies import FabricLink, FabricSpec, LinkChoice, TopologyError
from weft.topologies.int_rates import int_rates

_EXAMPLES = 4


def check_links(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check that the fabric has the links that `options` names. Raises KeyProblem."""
    for number, some in enumerate(options.faults.links):
        require_link(fabric, some.link, f"faults.links[{number}].link")
    for number, name in enumerate(options.credits.links or ()):
        require_link(fabric, name, f"credits.links[{number}]")


def check_int_rates(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check that INT has a code for every link's rate. Raises BadInputError."""
    if not options.int_telemetry:
        return
    try:
        int_rates(fabric)
    except TopologyError as error:
        raise BadInputError(f"int: {error}") from None


def link_name(link: FabricLink) -> str:
    """Return what `LinkChoice.parse` reads as both directions of a link."""
    return f"{link.a.node}<->{link.b.node}"


def require_link(fabric: FabricSpec, name: str, key: str) -> None:
    """Check that the fabric has a link of that name. Raises KeyProblem."""
    if LinkChoice.parse(name).links_of(fabric):
        return
    links = [link_name(link) for link in fabric.links]
    examples = ", ".join(links[:_EXAMPLES]) + (f", … {links[-1]}" if len(links) > _EXAMPLES else "")
    raise KeyProblem(key, f"the fabric has no link '{name}' (valid: {examples})")
