"""A controller over Thrift in the form of p4-utils' courses: routes to every host on every switch."""

import nnpy  # noqa: F401 - as many controllers do that never use it
from p4utils.utils.helper import load_topo
from p4utils.utils.sswitch_thrift_API import SimpleSwitchThriftAPI

topo = load_topo("topology.json")
for switch in topo.get_p4switches():
    controller = SimpleSwitchThriftAPI(topo.get_thrift_port(switch))
    controller.reset_state()
    controller.table_set_default("routes", "drop", [])
    for host in topo.get_hosts():
        path = topo.get_shortest_paths_between_nodes(switch, host)[0]
        port = topo.node_to_node_port_num(switch, path[1])
        mac = topo.node_to_node_mac(path[1], switch)
        controller.table_add("routes", "forward", [topo.get_host_ip(host) + "/32"], [mac, str(port)])
print(topo.get_p4switches(fields=["loopback"]))
