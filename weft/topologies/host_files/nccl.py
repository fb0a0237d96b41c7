"""NCCL's topology, as NCCL_TOPO_DUMP_FILE has it written: <system>, <cpu>, <pci>, <gpu>, <nvlink>, <nic>, <net>.

The elements are as in NCCL's src/graph/xml.cc. Expat delivers the file event by event: a document type is refused
where it begins, so that no entity is ever declared; depth and number of elements are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from weft.quantities.limits import MAX_RATE_BPS, MIN_RATE_BPS
from weft.quantities.readable import counted
from weft.quantities.units import shortest_rate, shown
from weft.topologies.errors import TopologyError
from weft.topologies.host_files.shape import HostFormat, HostShape

_MOST_DEPTH = 32
_MOST_ELEMENTS = 50_000
_MOST_COUNT = 4096
_MOST_GPUS = 64
_NVLINK_BPS = {60: 160 * 10**9, 70: 200 * 10**9, 80: 200 * 10**9, 90: 200 * 10**9, 100: 400 * 10**9, 103: 400 * 10**9}
"""Rate of an NVLink in each direction by the GPU's compute capability: P100, V100, A100, H100, B200 and B300."""


@dataclass
class _Element:
    tag: str
    attributes: dict[str, str]
    place: str
    children: list[_Element] = field(default_factory=list)

    def below(self, tag: str) -> Iterator[_Element]:
        """Yield the elements of a tag below this one, in the order of the file."""
        for child in self.children:
            if child.tag == tag:
                yield child
            yield from child.below(tag)

    def whole(self, name: str, most: int) -> int:
        text = self.attributes.get(name, "")
        value = int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else -1
        if not 0 <= value <= most:
            raise TopologyError(f"<{self.tag}>: {name} {shown(text)}", place=self.place, valid=f"0 to {most}")
        return value


class _Parser:
    def __init__(self) -> None:
        self._parser = expat.ParserCreate()
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._root = _Element("", {}, "line 1")
        self._open = [self._root]
        self._count = 0

    def read(self, content: bytes) -> _Element:
        """Return the root. Raises TopologyError."""
        try:
            self._parser.Parse(content, True)
        except expat.ExpatError as error:
            raise TopologyError(f"line {error.lineno}: is not XML: {expat.ErrorString(error.code)}") from None
        except (LookupError, ValueError) as error:
            if isinstance(error, TopologyError):
                raise
            raise TopologyError(f"line 1: cannot be decoded: {error}") from None
        return self._root.children[0]

    def _doctype(self, name: str, *_: object) -> None:
        place = f"line {self._parser.CurrentLineNumber}"
        raise TopologyError(f"DOCTYPE {shown(name)} is refused", place=place, valid="XML without one")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        element = _Element(tag, attributes, f"line {self._parser.CurrentLineNumber}")
        self._count += 1
        if len(self._open) > _MOST_DEPTH or self._count > _MOST_ELEMENTS:
            valid = f"{_MOST_DEPTH} levels and {_MOST_ELEMENTS} elements"
            raise TopologyError("too many elements, or too deep", place=element.place, valid=valid)
        self._open[-1].children.append(element)
        self._open.append(element)

    def _end(self, _tag: str) -> None:
        self._open.pop()


def read_nccl(content: bytes) -> HostShape:
    """Return the shape of the host. Raises TopologyError with the line."""
    system = _Parser().read(content)
    if system.tag != "system":
        raise TopologyError(f"<{shown(system.tag)[1:-1]}> is no topology", place=system.place, valid="<system>")
    hosts = {cpu.attributes.get("host_hash", "") for cpu in system.below("cpu")}
    if len(hosts) > 1:
        raise TopologyError(f"describes {len(hosts)} hosts", place=system.place, valid="one")
    gpus = list(system.below("gpu"))
    if not 1 <= len(gpus) <= _MOST_GPUS:
        raise TopologyError(f"{counted(len(gpus), 'GPU')}", place=system.place, valid=f"1 to {_MOST_GPUS}")
    nics_per_rank, nets, left_out = _near_nets(system, len(gpus))
    rate_bps = _same("speed", [(net, net.whole("speed", MAX_RATE_BPS // 10**6) * 10**6) for net in nets], shortest_rate)
    if not rate_bps >= MIN_RATE_BPS:
        raise TopologyError(
            f"speed of {rate_bps} b/s", place=nets[0].place, valid=f"{MIN_RATE_BPS // 10**6} Mb/s or more"
        )
    scale_up_bps = _same("NVLinks", [(gpu, _nvlink_bps(gpu)) for gpu in gpus], shortest_rate)
    notes = []
    if left_out:
        names = ", ".join(net.attributes.get("name", "?") for net in left_out)
        notes.append(f"NICs without a GPU near them, left out: {names}")
    return HostShape(len(gpus), nics_per_rank, rate_bps, scale_up_bps or None, tuple(notes))


def _near_nets(system: _Element, gpus: int) -> tuple[int, list[_Element], list[_Element]]:
    """Return NICs per GPU, the NICs near GPUs, and the others: near is below the same PCI root, else the same CPU."""
    cpus = list(system.below("cpu"))
    for roots in ([pci for cpu in cpus for pci in cpu.children], cpus):
        groups = [(len(list(root.below("gpu"))), list(root.below("net"))) for root in roots]
        near = [(count, of_group) for count, of_group in groups if count]
        shares = {len(of_group) / count for count, of_group in near}
        share = next(iter(shares), 0.0)
        if len(shares) == 1 and share >= 1 and share.is_integer() and sum(count for count, _ in near) == gpus:
            nets = [net for _, of_group in near for net in of_group]
            kept = set(map(id, nets))
            return int(share), nets, [net for net in system.below("net") if id(net) not in kept]
    found = counted(sum(1 for _ in system.below("net")), "NIC")
    raise TopologyError(
        f"{found} cannot be shared out evenly among {counted(gpus, 'GPU')}",
        place=system.place,
        valid="as many for each",
    )


def _nvlink_bps(gpu: _Element) -> int:
    links = sum(link.whole("count", _MOST_COUNT) for link in gpu.below("nvlink"))
    if not links:
        return 0
    capability = gpu.whole("sm", 999)
    if capability not in _NVLINK_BPS:
        valid = f"{', '.join(map(str, _NVLINK_BPS))}"
        raise TopologyError(f"the rate of NVLinks of sm {capability} is not known", place=gpu.place, valid=valid)
    return links * _NVLINK_BPS[capability]


def _same(what: str, found: list[tuple[_Element, int]], written: Callable[[int], str]) -> int:
    first, value = found[0]
    for element, other in found:
        if other != value:
            raise TopologyError(
                f"<{element.tag}> has {what} of {written(other)}, line {first.place.split()[-1]} of {written(value)}",
                place=element.place,
                valid="the same for all",
            )
    return value


KIND = HostFormat(
    "nccl", "NCCL's topology (NCCL_TOPO_DUMP_FILE)", lambda content: content.lstrip()[:1] == b"<", read_nccl
)
