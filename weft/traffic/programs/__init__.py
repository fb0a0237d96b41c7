"""Programs on hosts' own IP stacks, which send and receive what is not RoCEv2's; virtual clock only."""

from weft.traffic.programs.base import OpenProgram, Program
from weft.traffic.programs.pinging import EchoRecord, Ping
from weft.traffic.programs.replaying import Replay, ReplayRecord
from weft.traffic.programs.scripts import Script, ScriptedHost, ScriptRecord
from weft.traffic.programs.udp import UdpLoad, UdpReceived, UdpReceiver, UdpSender, UdpSent

__all__ = [
    "EchoRecord",
    "OpenProgram",
    "Ping",
    "Program",
    "Replay",
    "ReplayRecord",
    "Script",
    "ScriptRecord",
    "ScriptedHost",
    "UdpLoad",
    "UdpReceived",
    "UdpReceiver",
    "UdpSender",
    "UdpSent",
]
