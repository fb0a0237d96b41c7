"""A switch's entries for groups that use its services: the group, its ports, and the port to each client."""

from __future__ import annotations

from dataclasses import dataclass

from weft.controller.entities import Entity, entry
from weft.controller.features.kind import Feature, OfSwitch, Settings
from weft.controller.features.multicast import MAX_GROUP, multicast_group
from weft.controller.services import ServiceGroup
from weft.controller.trees import TreeNode, place_in_tree
from weft.topologies import FabricSpec, SwitchSpec


@dataclass(frozen=True)
class ServicesSettings:
    """Groups of hosts that use services, for a program with services."""

    groups: tuple[ServiceGroup, ...] = ()


def _entities(fabric: FabricSpec, settings: Settings) -> OfSwitch:
    by_switch: dict[str, list[Entity]] = {}
    for group in settings.of(ServicesSettings).groups:
        ports = group.client_ports(fabric)
        for node in group.tree.nodes:
            found = [*_node_entities(fabric, group, node), *_client_entities(group, ports[node.switch])]
            by_switch.setdefault(node.switch, []).extend(found)

    def of_switch(switch: SwitchSpec) -> list[Entity]:
        return by_switch.get(switch.name, [])

    return of_switch


def _node_entities(fabric: FabricSpec, group: ServiceGroup, node: TreeNode) -> list[Entity]:
    # Aggregation jobs use the multicast groups with their own numbers, counted from the other end.
    multicast = MAX_GROUP - group.group_id
    found: list[Entity] = [
        multicast_group(multicast, [child.port for child in node.children]),
        entry(
            "service_group",
            {"group_id": group.group_id},
            "set_group",
            queue_key=group.q_key,
            epoch=group.epoch,
            ip_version=group.ip_version,
            cell_base=0,
            cell_count=group.cell_count,
            **place_in_tree(fabric, node, group.ip_version),
            multicast_group=multicast,
            window_mask=group.window - 1,
        ),
    ]
    for child in node.children:
        found.append(
            entry(
                "service_member",
                {"group_id": group.group_id, "port": child.port},
                "service_child",
                rank_of_child=child.rank,
                bit_of_child=1 << child.rank,
                is_switch=int(not fabric.switch(node.switch).port(child.port).peer_is_host),
            )
        )
    if node.parent:
        match = {"group_id": group.group_id, "port": node.parent.port}
        found.append(entry("service_member", match, "service_parent"))
    return found


def _client_entities(group: ServiceGroup, ports: dict[int, int]) -> list[Entity]:
    return [
        entry(
            "service_client",
            {"group_id": group.group_id, "client": client},
            "to_client",
            port=port,
            first_entry=client * group.window,
        )
        for client, port in sorted(ports.items())
    ]


KIND = Feature(
    name="services",
    summary="Groups of hosts that use services of switches: barriers and counters.",
    tables=("service_group", "service_member", "service_client"),
    entities=_entities,
)
