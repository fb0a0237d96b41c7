"""An exercise in the style of p4lang's tutorials, with the modules that their controllers import.

`network.py PROGRAM.json`: one switch, two hosts; a controller loads the program in PI's P4DeviceConfig and writes a
route to h1, simple_switch_CLI one to h2; then Mininet's prompt.
"""

import subprocess
import sys
import threading
from pathlib import Path

import grpc
from google.protobuf import text_format
from google.rpc import code_pb2
from mininet.cli import CLI
from mininet.net import Mininet
from p4.config.v1 import p4info_pb2
from p4.tmp import p4config_pb2
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc
from tutorial_network import ADDRESSES, GRPC_PORT, OneSwitch

THRIFT_PORT = 9095


def write_route(program: Path) -> None:
    """Load the program, and write the route to h1."""
    info = p4info_pb2.P4Info()
    text_format.Merge(program.with_suffix(".p4.p4info.txtpb").read_text(), info)
    (table,) = (each.preamble.id for each in info.tables if each.preamble.name == "MyIngress.ipv4_lpm")
    (action,) = (each.preamble.id for each in info.actions if each.preamble.name == "MyIngress.ipv4_forward")
    device = p4config_pb2.P4DeviceConfig(reassign=True, device_data=program.read_bytes())
    election = p4runtime_pb2.Uint128(low=1)
    done = threading.Event()

    def requests():
        bid = p4runtime_pb2.MasterArbitrationUpdate(device_id=0, election_id=election)
        yield p4runtime_pb2.StreamMessageRequest(arbitration=bid)
        done.wait()

    with grpc.insecure_channel(f"127.0.0.1:{GRPC_PORT}") as channel:
        stub = p4runtime_pb2_grpc.P4RuntimeStub(channel)
        stream = stub.StreamChannel(requests())
        assert next(stream).arbitration.status.code == code_pb2.OK
        load = p4runtime_pb2.SetForwardingPipelineConfigRequest(election_id=election, action=3)
        load.config.p4info.CopyFrom(info)
        load.config.p4_device_config = device.SerializeToString()
        stub.SetForwardingPipelineConfig(load)
        request = p4runtime_pb2.WriteRequest(election_id=election)
        entry = request.updates.add(type=p4runtime_pb2.Update.INSERT).entity.table_entry
        entry.table_id, entry.action.action.action_id = table, action
        match = entry.match.add(field_id=1)
        match.lpm.value, match.lpm.prefix_len = bytes([10, 0, 1, 1]), 32
        entry.action.action.params.add(param_id=1, value=bytes([2, 0, 0, 0, 0, 1]))
        entry.action.action.params.add(param_id=2, value=b"\x01")
        stub.Write(request)
        # A client that stands for Thrift takes nothing from the primary.
        print(commands("table_add ipv4_lpm ipv4_forward 10.0.1.2/32 => 02:00:00:00:00:02 2", "no_command"))
        entry.match[0].lpm.value = bytes([10, 0, 1, 9])
        stub.Write(request)
        done.set()


def commands(*lines: str) -> str:
    """Return what simple_switch_CLI says to commands."""
    command = ["simple_switch_CLI", "--thrift-port", str(THRIFT_PORT)]
    return subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True).stdout


def main(program: str) -> None:
    """Run the exercise."""
    net = Mininet(topo=OneSwitch("simple_switch_grpc", program, "logs"), controller=None)
    net.start()
    try:
        net.staticArp()
        write_route(Path(program))
        print(commands("table_num_entries ipv4_lpm"))
        print(sorted(ADDRESSES))
        CLI(net)
    finally:
        net.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
