"""Section of a scenario file on P4.org's in-band network telemetry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from weft.controller.features.int_md import MAX_WATCHED, IntMdSettings, WatchedFlows
from weft.hints import did_you_mean
from weft.quantities.definitions import whole
from weft.quantities.example import Example
from weft.quantities.units import shown
from weft.scenario.places import KeyProblem
from weft.scenario.values import FeatureSection, PriorityClass, Section, SectionKeyError, Text
from weft.topologies import FabricSpec
from weft.traffic.int_md_format import FIXED_BYTES, MAX_STACK_WORDS, WORD_BYTES, bitmap_of, hop_words_of
from weft.wire.headers.int_md import INT_MD_UDP_PORT
from weft.wire.headers.roce import ROCE_UDP_PORT

if TYPE_CHECKING:
    from weft.scenario.options import FabricOptions

Metadata = Literal["node", "interfaces", "latency", "queue", "ingress_time", "egress_time"]
_PROTOCOLS = {"tcp": 6, "udp": 17}
_Host = Annotated[str, Text("a host", r"\A[^\s]{1,64}\Z", "h3")]
_Port = Annotated[int, whole(1, 65535)]
_ON = (".mode=int-md", ".collector=h3")
_WATCHED = ("telemetry.mode=int-md", "telemetry.collector=h3")


class WatchSection(Section):
    """Flows that the first switch puts INT on; a key that is left out matches all."""

    source: Annotated[_Host | None, Example("h0", _WATCHED)] = Field(None, alias="from")
    """Sending host."""
    to: Annotated[_Host | None, Example("h3", _WATCHED)] = None
    """Receiving host."""
    protocol: Annotated[Literal["tcp", "udp"] | None, Example("tcp", _WATCHED)] = None
    """RoCEv2 is udp."""
    source_port: Annotated[_Port | None, Example("50000", _WATCHED)] = None
    """UDP or TCP port of the sender."""
    destination_port: Annotated[_Port | None, Example("4791", _WATCHED)] = None
    """UDP or TCP port of the receiver; RoCEv2's is 4791."""
    priority_class: Annotated[PriorityClass | None, Example("3", _WATCHED)] = Field(None, alias="class")
    """Class of the packets at the first switch; RoCEv2's data have 3 by default."""
    one_of: Annotated[int, whole(1, 2**31 - 1), Example("100", _WATCHED)] = 1
    """One packet of so many gets INT, the first one included, at each first switch."""

    def shown(self) -> str:
        """Return the keys that restrict it, as a scenario file has them."""
        given = self.model_dump(by_alias=True, exclude_defaults=True)
        return "{" + ", ".join(f"{key}: {value}" for key, value in given.items()) + "}" if given else "every packet"

    def flows(self) -> WatchedFlows:
        """Return what the controller takes."""
        return WatchedFlows(
            self.source,
            self.to,
            _PROTOCOLS[self.protocol] if self.protocol else None,
            self.source_port,
            self.destination_port,
            self.priority_class,
            self.one_of,
        )


class TelemetrySection(FeatureSection):
    """INT-MD of P4.org's INT 2.1: switches add what they know to a packet, the last one reports it to a collector."""

    mode: Annotated[Literal["none", "int-md"], Example("int-md", (".collector=h3",))] = "none"
    """`int-md`: the fabric's program has INT-MD. It goes with `int`, HPCC's shim, or without."""
    collector: Annotated[_Host | None, Example("h3", (".mode=int-md",))] = None
    """Host that telemetry reports are sent to."""
    port: Annotated[int, whole(1024, 65535), Example("9999", _ON)] = 32766
    """The collector's UDP port."""
    dscp: Annotated[int, whole(0, 63), Example("26", _ON)] = 0
    """DSCP of the reports, which gives them their class."""
    watch: Annotated[list[WatchSection], Example("[{from: h0, one_of: 10}]", _ON)] = Field(
        default=[WatchSection()], max_length=64
    )
    """Flows to watch; of entries that match a packet the first counts. By default every packet is watched."""
    metadata: Annotated[list[Metadata], Example("[node, queue]", _ON)] = Field(
        default=["node", "interfaces", "latency", "queue", "ingress_time", "egress_time"]
    )
    """Fields that each switch records: always `node`; also those that are listed."""
    hops: Annotated[int, whole(1, 252), Example("4", _ON)] = 16
    """Maximum number of switches that record; a further one says so in the packet."""

    @model_validator(mode="after")
    def _check_together(self) -> TelemetrySection:
        given = sorted(self.model_fields_set - {"mode"})
        if self.mode == "none":
            for name in given:
                raise SectionKeyError(name, "there is no telemetry with mode: none", valid="mode: int-md")
            return self
        if self.collector is None:
            raise SectionKeyError("collector", "mode: int-md needs a host that takes the reports")
        if self.port in (ROCE_UDP_PORT, INT_MD_UDP_PORT):
            raise SectionKeyError("port", f"{self.port} is {'RoCEv2' if self.port == ROCE_UDP_PORT else 'INT'}'s")
        if not self.watch:
            raise SectionKeyError("watch", "[]", valid="one item or more")
        if "node" not in self.metadata or len(set(self.metadata)) < len(self.metadata):
            raise SectionKeyError("metadata", f"[{', '.join(self.metadata)}]", valid="node, and others once each")
        if self.hops * self.hop_words > MAX_STACK_WORDS:
            raise SectionKeyError(
                "hops",
                f"{self.hops} with {self.hop_words} words of metadata each",
                valid=f"at most {MAX_STACK_WORDS // self.hop_words}: a stack has up to {MAX_STACK_WORDS} words",
            )
        return self

    @property
    def is_on(self) -> bool:
        """Whether switches have INT-MD."""
        return self.mode != "none"

    @property
    def instructions(self) -> int:
        """Bitmap of the metadata."""
        return bitmap_of(self.metadata)

    @property
    def hop_words(self) -> int:
        """Words of 4 bytes that each switch adds."""
        return hop_words_of(self.instructions)

    def largest_growth_bytes(self, switches: int) -> int:
        """Return the most that so many switches add to a RoCEv2 packet."""
        return FIXED_BYTES + min(switches, self.hops) * self.hop_words * WORD_BYTES

    def of_features(self, options: FabricOptions) -> Iterator[object]:
        """Return the controller's settings."""
        if not self.is_on:
            yield IntMdSettings()
            return
        yield IntMdSettings(
            collector=self.collector or "",
            port=self.port,
            dscp=self.dscp,
            watched=tuple(each.flows() for each in self.watch),
            instructions=self.instructions,
            hop_words=self.hop_words,
            hops=self.hops,
            link_mtu_bytes=options.link_mtu_bytes,
            ip_version=options.ip_version,
        )


def check_telemetry(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check hosts of the section, and that packets are carried one by one. Raises KeyProblem."""
    telemetry = options.telemetry
    if not telemetry.is_on:
        return
    names = [host.name for host in fabric.hosts]
    named = {"telemetry.collector": telemetry.collector}
    for place, each in enumerate(telemetry.watch):
        named |= {f"telemetry.watch[{place}].from": each.source, f"telemetry.watch[{place}].to": each.to}
    for key, host in named.items():
        if host is not None and host not in names:
            raise KeyProblem(key, f"no host {shown(host)}; {did_you_mean(host, names)}")
    if options.switching.cut_through:
        raise KeyProblem("telemetry.mode", "int-md with cut-through switching: packets grow on their way")
    entries = sum(_entries(fabric, each) for each in telemetry.watch)
    if entries > MAX_WATCHED:
        raise KeyProblem("telemetry.watch", f"{entries} entries of a switch", valid=f"at most {MAX_WATCHED}")


def _entries(fabric: FabricSpec, watch: WatchSection) -> int:
    if watch.source is None and watch.to is None:
        return 1
    nics = [len(fabric.host(name).nics) if name else 1 for name in (watch.source, watch.to)]
    return 2 * nics[0] * nics[1]
