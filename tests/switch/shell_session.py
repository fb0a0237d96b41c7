"""What a user types into p4runtime-shell, run by its own interpreter: shell_session.py ADDRESS P4INFO PROGRAM.

Not a test module: it prints one JSON object of what it saw, which the test compares.
"""

from __future__ import annotations

import json
import sys

import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeWriteException


def tables() -> dict[str, object]:
    entry = sh.TableEntry("routes")(action="route")
    entry.match["ipv4.dst"] = "10.0.0.0/8"
    entry.action["port"] = "510"
    entry.action["mac"] = "02:00:00:00:00:05"
    entry.metadata = b"note"
    entry.insert()
    entry.action["mac"] = "02:00:00:00:00:06"
    entry.modify()
    (read,) = list(sh.TableEntry("routes").read())
    acl = sh.TableEntry("acl")(action="deny")
    acl.match["ipv4.src"] = "10.1.0.0&&&255.255.0.0"
    acl.match["ipv4.ttl"] = "1..9"
    acl.match["ipv4.protocol"] = "6"
    acl.priority = 10
    acl.meter_config.cir = 1
    acl.meter_config.cburst = 2
    acl.meter_config.pir = 3
    acl.meter_config.pburst = 4
    acl.insert()
    (acl_read,) = list(sh.TableEntry("acl").read())
    default = sh.TableEntry("routes")(action="NoAction", is_default=True)
    try:
        default.modify()
        refused = ""
    except P4RuntimeWriteException as error:
        refused = str(error)
    direct = sh.DirectCounterEntry("routes_counter")
    direct.table_entry.match["ipv4.dst"] = "10.0.0.0/8"
    direct.packet_count = 5
    direct.modify()
    (counted,) = list(sh.DirectCounterEntry("routes_counter").read())
    acl.delete()
    return {
        "mac": read.action["mac"].value.hex(),
        "acl": [acl_read.priority, acl_read.match["ipv4.ttl"] is not None],
        "default refused": refused,
        "counted": counted.packet_count,
        "acl left": len(list(sh.TableEntry("acl").read())),
    }


def selector() -> dict[str, object]:
    member = sh.ActionProfileMember("selector")(member_id=1, action="set_port")
    member.action["port"] = "3"
    member.insert()
    group = sh.ActionProfileGroup("selector")(group_id=1)
    group.max_size = 2
    group.add(1, 2)
    group.insert()
    entry = sh.TableEntry("ecmp")(group_id=1)
    entry.match["ipv4.dst"] = "10.9.9.9"
    entry.insert()
    (read,) = list(sh.TableEntry("ecmp").read())
    referenced = read.group_id
    entry.delete()
    group.delete()
    member.delete()
    shot = sh.TableEntry("ecmp")
    shot.match["ipv4.dst"] = "10.9.9.9"
    action = sh.Action("set_port")
    action["port"] = "4"
    shot.oneshot.add(action, weight=2)
    shot.insert()
    (one_shot,) = list(sh.TableEntry("ecmp").read())
    weights = [each.weight for each in one_shot.oneshot.actions]
    shot.delete()
    return {"group": referenced, "weights": weights}


def cells() -> dict[str, object]:
    counter = sh.CounterEntry("counter")
    counter.index = 3
    counter.packet_count = 7
    counter.modify()
    meter = sh.MeterEntry("meter")
    meter.index = 3
    meter.cir, meter.cburst, meter.pir, meter.pburst = 1, 2, 3, 4
    meter.modify()
    (metered,) = [each for each in sh.MeterEntry("meter").read() if each.cir]
    return {
        "counter": [each.packet_count for each in sh.CounterEntry("counter").read()],
        "meter": [metered.index, metered.cir, metered.pburst],
    }


def replication() -> dict[str, object]:
    group = sh.MulticastGroupEntry(5)
    group.add(1, 1).add(2, 1)
    group.insert()
    session = sh.CloneSessionEntry(6)
    session.add(510, 1)
    session.packet_length_bytes = 64
    session.insert()
    (read,) = list(sh.MulticastGroupEntry().read())
    replicas = len(read.replicas)
    session.delete()
    group.delete()
    return {"replicas": replicas, "left": len(list(sh.MulticastGroupEntry().read()))}


def streams() -> dict[str, object]:
    digest = sh.DigestEntry("digest_t")
    digest.max_list_size = 1
    digest.insert()
    digest.max_list_size = 9
    digest.modify()
    (configured,) = list(sh.DigestEntry("digest_t").read())
    digest.delete()
    packets = sh.PacketIn()
    sh.PacketOut(bytes.fromhex(PACKET), egress_port="510", reserved="0").send()
    (received,) = packets.sniff(timeout=SNIFF_S)
    return {"payload": received.packet.payload.hex(), "digests in a list": configured.max_list_size}


SNIFF_S = 2
PACKET = sys.argv[4]
sh.setup(
    device_id=1,
    grpc_addr=sys.argv[1],
    election_id=(0, 1),
    config=sh.FwdPipeConfig(sys.argv[2], sys.argv[3]),
    verbose=False,
)
steps = (tables, selector, cells, replication, streams)
try:
    print(json.dumps({step.__name__: step() for step in steps}))
finally:
    sh.teardown()  # ends the stream's threads, which would keep the process alive
