"""The P4Runtime server: every request is answered with a code of the specification, and OK means done.

A case is a text: requests in protobuf's text format, each below a line `# METHOD`. The same requests go to
a native switch and to an oracle, whose answers must agree.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from finsy.proto import U128, p4i, p4r
from google.protobuf import text_format
from google.protobuf.message import Message

from fuzz.entities import EntityGenerator, one_entity
from fuzz.messages import mutate_message
from fuzz.p4runtime_session import Answer, ServerUnderTest
from fuzz.target import Finding
from weft.compiler import compile_file
from weft.switch.native import NativeSwitch
from weft.switch.oracle import OracleSwitch

_PROGRAM = Path(__file__).parent / "entities.p4"
_METHODS: dict[str, type[Message]] = {
    "Write": p4r.WriteRequest,
    "Read": p4r.ReadRequest,
    "SetForwardingPipelineConfig": p4r.SetForwardingPipelineConfigRequest,
    "GetForwardingPipelineConfig": p4r.GetForwardingPipelineConfigRequest,
    "Capabilities": p4r.CapabilitiesRequest,
    "StreamChannel": p4r.StreamMessageRequest,
}
_HEADING = re.compile(r"^# (\w+)$", re.MULTILINE)
_MOST_REQUESTS = 40
_HUGE = 2000
CPU_PORT = 510


class P4RuntimeTarget:
    """Sequences of requests."""

    name = "p4runtime"
    suffix = ".txt"
    covered_paths = (
        "weft/switch/p4runtime",
        "weft/switch/backend/checks.py",
        "weft/switch/native",
        "weft/switch/oracle",
    )
    timeout_s = 30.0

    def __init__(self) -> None:
        self._generator = EntityGenerator(_p4info())
        self._folder = tempfile.TemporaryDirectory(prefix="weft-fuzz-")
        self._servers: list[ServerUnderTest] | None = None

    def seeds(self) -> list[bytes]:
        """Writes, reads and stream messages for one random entity of each kind and more."""
        rng = random.Random(0)
        return [_text([self._request(rng) for _ in range(12)]) for _ in range(12)]

    def mutate(self, rng: random.Random, parents: Sequence[bytes]) -> bytes:
        """Requests changed, added, removed, repeated, or taken from another case."""
        requests = _parse(parents[0]) or []
        others = _parse(parents[-1]) or []
        for _ in range(rng.choice((1, 1, 2, 4))):
            choice = rng.randrange(8)
            if choice <= 1 or not requests:
                requests.insert(rng.randrange(len(requests) + 1), self._request(rng))
            elif choice == 2 and others:
                requests.insert(rng.randrange(len(requests) + 1), rng.choice(others))
            elif choice == 3 and len(requests) > 1:
                del requests[rng.randrange(len(requests))]
            elif choice == 4:
                requests.append(rng.choice(requests))
            else:
                at = rng.randrange(len(requests))
                requests[at] = _mutated(rng, *requests[at])
        return _text(requests[:_MOST_REQUESTS])

    def execute(self, case: bytes) -> str:
        """Send everything to both servers and compare."""
        requests = _parse(case)
        if requests is None:
            return "no case"
        if self._servers is None:
            self._servers = [
                ServerUnderTest(Path(self._folder.name) / name, make)
                for name, make in (("native", NativeSwitch), ("oracle", OracleSwitch))
            ]
        answers = [server.run(_config(), requests) for server in self._servers]
        for (method, request), native, oracle in zip(requests, *answers, strict=True):
            if native.comparable() != oracle.comparable():
                text = text_format.MessageToString(request)[:400]
                raise Finding(f"{method}: native {native}, oracle {oracle}, for {text}")
        return _summary(answers[0])

    def _request(self, rng: random.Random) -> tuple[str, Message]:
        choice = rng.randrange(12)
        if choice <= 6:
            request = p4r.WriteRequest(device_id=1, election_id=U128.encode(1))
            for _ in range(rng.choice((1, 1, 2, 5))):
                kind = rng.choice((p4r.Update.INSERT, p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE))
                request.updates.add(type=kind).entity.CopyFrom(self._generator.entity(rng))
            return "Write", request
        if choice <= 8:
            query = self._generator.entity(rng)
            if rng.random() < 0.5:
                query = one_entity(str(query.WhichOneof("entity")), {})
            return "Read", p4r.ReadRequest(device_id=1, entities=[query])
        if choice == 9:
            return "StreamChannel", p4r.StreamMessageRequest(packet=self._generator.packet_out(rng))
        if choice == 10:
            arbitration = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(rng.randrange(4)))
            return "StreamChannel", p4r.StreamMessageRequest(arbitration=arbitration)
        if rng.random() < 0.7:
            return "GetForwardingPipelineConfig", p4r.GetForwardingPipelineConfigRequest(device_id=1)
        actions = p4r.SetForwardingPipelineConfigRequest.Action.values()
        return "SetForwardingPipelineConfig", p4r.SetForwardingPipelineConfigRequest(
            device_id=1, election_id=U128.encode(1), action=rng.choice(actions), config=_config()
        )


@cache
def _config() -> p4r.ForwardingPipelineConfig:
    result = compile_file(_PROGRAM)
    info = p4i.P4Info.FromString(result.p4info_bytes())
    config = p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=result.json_text().encode())
    config.cookie.cookie = 7
    return config


def _p4info() -> p4i.P4Info:
    return _config().p4info


def _mutated(rng: random.Random, method: str, request: Message) -> tuple[str, Message]:
    made: Any = type(request)()
    made.CopyFrom(request)
    for _ in range(rng.choice((1, 1, 2, 3))):
        mutate_message(rng, made)
    if rng.random() < 0.01 and isinstance(made, p4r.WriteRequest) and made.updates:
        made.updates.extend([made.updates[0]] * _HUGE)
    if rng.random() < 0.01:
        method = rng.choice([name for name, kind in _METHODS.items() if isinstance(made, kind)])
    return method, made


def _text(requests: Sequence[tuple[str, Message]]) -> bytes:
    return "".join(f"# {method}\n{text_format.MessageToString(request)}" for method, request in requests).encode()


def _parse(case: bytes) -> list[tuple[str, Message]] | None:
    """None if the text holds no requests."""
    parts = _HEADING.split(case.decode(errors="replace"))
    requests: list[tuple[str, Message]] = []
    try:
        for method, text in zip(parts[1::2], parts[2::2], strict=True):
            requests.append((method, text_format.Parse(text, _METHODS[method]())))
    except (KeyError, text_format.ParseError):
        return None
    return requests


def _summary(answers: Sequence[Answer]) -> str:
    codes = sorted({code for answer in answers for code in answer.codes()})
    return ", ".join(codes) or "nothing sent"
