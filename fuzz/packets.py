"""The packet path: native switch and oracle do the same with every packet, and count every loss.

A case is an STF script whose first line names the program, `# program fabric.p4`: what it sets up, and packets.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from fuzz.frames import random_frame
from fuzz.programs import FABRIC, case_programs, program
from fuzz.target import Finding
from fuzz.twin import Twin
from weft.switch.backend import SwitchBackend
from weft.switch.stf.errors import StfSyntaxError
from weft.switch.stf.parser import parse_text
from weft.switch.stf.script import run_script
from weft.switch.stf.statements import CheckCounter, Expect, NoPacket
from weft.switch.stf.target import Target as ScriptTarget

_FABRIC_SCRIPT = Path(__file__).parent / "fabric.stf"
_HEADING = "# program "
_PACKET = re.compile(r"packet\s+(\d+)\s+([0-9A-Fa-f ]*)\Z")
_NUMBER = re.compile(r"\b0x[0-9a-fA-F]+\b|\b\d+\b")
_PORTS = (0, 1, 2, 5, 6, 9, 255, 509, 510, 511)
_LENGTHS = (
    0,
    1,
    13,
    14,
    15,
    33,
    34,
    41,
    42,
    53,
    54,
    59,
    60,
    64,
    85,
    86,
    337,
    338,
    341,
    342,
    343,
    1500,
    9000,
    16_383,
    65_535,
)
_MOST_LINES = 120
_SCRIPT = Path("case.stf")


class PacketsTarget:
    """Scripts on both switches at once."""

    name = "packets"
    suffix = ".stf"
    covered_paths = ("weft/switch/oracle", "weft/switch/native")
    timeout_s = 30.0

    def __init__(self) -> None:
        self._programs = {path.name: path for path in [*case_programs(), FABRIC]}

    def seeds(self) -> list[bytes]:
        """The scripts of Weft's conformance cases, and one that sets up a leaf of the fabric."""
        scripts = {path: path.with_suffix(".stf") for path in case_programs()} | {FABRIC: _FABRIC_SCRIPT}
        return [
            f"{_HEADING}{path.name}\n{script.read_text(encoding='utf-8')}".encode() for path, script in scripts.items()
        ]

    def mutate(self, rng: random.Random, parents: Sequence[bytes]) -> bytes:
        """A script with packets changed, added and removed, and now and then with another set-up."""
        heading, *lines = parents[0].decode(errors="replace").split("\n")
        others = [line for line in parents[-1].decode(errors="replace").split("\n") if _PACKET.match(line.strip())]
        for _ in range(rng.choice((1, 2, 4, 8))):
            _mutate_lines(rng, lines, others, fabric=FABRIC.name in heading)
        return "\n".join([heading, *lines[:_MOST_LINES]]).encode()

    def execute(self, case: bytes) -> str:
        """Run the script on both switches."""
        heading, _, text = case.decode(errors="replace").partition("\n")
        path = self._programs.get(heading.removeprefix(_HEADING))
        if path is None:
            return "no program"
        try:
            statements = parse_text(text, _SCRIPT)
        except StfSyntaxError as error:
            if not str(error).startswith(f"{_SCRIPT}:"):
                raise Finding(f"an error without a place: {error}") from error
            return "no script"
        loaded = program(path)
        twin = Twin(loaded)
        target = ScriptTarget(cast(SwitchBackend, _Both(twin)), twin.process)
        run = [each for each in statements if not isinstance(each, Expect | NoPacket | CheckCounter)]
        failures = [each for each in run_script(run, target, loaded) if "nothing more was expected" not in each]
        twin.compare_state()
        return f"{path.stem}: {'run' if not failures else 'a statement is refused'}"


class _Both:
    """Passes every call on to both switches of a twin, which must answer alike."""

    def __init__(self, twin: Twin) -> None:
        self._twin = twin

    def __getattr__(self, name: str) -> Any:
        if name == "program":
            return self._twin.program
        return lambda *arguments: self._twin.both(lambda switch: getattr(switch, name)(*arguments))


def _mutate_lines(rng: random.Random, lines: list[str], others: list[str], *, fabric: bool) -> None:
    places = [index for index, line in enumerate(lines) if _PACKET.match(line.strip())]
    choice = rng.randrange(12)
    if choice == 0 and others:
        lines.insert(_after(rng, places, lines), rng.choice(others))
    elif choice <= 3 and fabric:
        port = rng.choice((1, 1, 2, 2, 5, 510))
        lines.insert(_after(rng, places, lines), f"packet {port} {random_frame(rng).hex()}")
    elif choice == 4 and len(places) > 1:
        del lines[rng.choice(places)]
    elif choice == 5 and len(places) > 1:
        first, second = rng.sample(places, 2)
        lines[first], lines[second] = lines[second], lines[first]
    elif choice == 6:
        _change_statement(rng, lines)
    elif places:
        at = rng.choice(places)
        changed = _changed(rng, lines[at])
        if rng.random() < 0.5:
            lines[at] = changed
        else:
            lines.insert(at + 1, changed)


def _after(rng: random.Random, places: list[int], lines: list[str]) -> int:
    return rng.choice(places) + 1 if places else len(lines)


def _change_statement(rng: random.Random, lines: list[str]) -> None:
    """A number of some statement becomes another."""
    found = [(index, match) for index, line in enumerate(lines) for match in _NUMBER.finditer(line) if len(line) < 300]
    if not found:
        return
    index, match = rng.choice(found)
    value = int(match.group(), 0) if match.group().startswith("0x") else int(match.group().lstrip("0") or "0")
    near = rng.choice(
        (value + 1, max(value - 1, 0), value * 2, 0, rng.getrandbits(rng.choice((1, 4, 8, 9, 16, 32, 48))))
    )
    line = lines[index]
    lines[index] = f"{line[: match.start()]}{near}{line[match.end() :]}"


def _changed(rng: random.Random, line: str) -> str:
    match = _PACKET.match(line.strip())
    assert match is not None
    port = match.group(1) if rng.random() < 0.8 else str(rng.choice(_PORTS))
    digits = match.group(2).replace(" ", "")
    data = bytearray.fromhex(digits[: len(digits) & ~1])
    for _ in range(rng.choice((1, 1, 2, 5))):
        _damage(rng, data)
    return f"packet {port} {bytes(data).hex()}"


def _damage(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data)) if data else 0
    match rng.randrange(8):
        case 0 | 1 if data:
            data[at] ^= 1 << rng.randrange(8)
        case 2 if data:
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        case 3:
            width = rng.choice((2, 4))
            data[at : at + width] = rng.choice((0, 1, 0x0800, 0x86DD, 0x88B5, 0xFFFF, rng.getrandbits(16))).to_bytes(
                width, "big"
            )
        case 4:
            del data[rng.randrange(len(data) + 1) :]
        case 5:
            length = rng.choice(_LENGTHS)
            data += rng.randbytes(max(0, length - len(data)))
        case 6:
            del data[at : at + rng.choice((1, 2, 4, 8))]
        case _:
            data[at:at] = rng.randbytes(rng.choice((1, 2, 4, 8, 40)))
