"""Sections about a switch's memory: the buffer its ports share, its schedulers, its flow control."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from engine import MOST_CREDIT_BUFFER_BYTES
from weft.scenario.links import LinkChoice, LinkName
from weft.scenario.values import Section, SizeBytes
from weft.units import parse_size_bytes

CLASSES = 8
PriorityClass = Annotated[int, Field(ge=0, lt=CLASSES)]
SomeBytes = Annotated[int, BeforeValidator(parse_size_bytes), Field(ge=0)]
Alpha = Annotated[float, Field(gt=0, le=1024)]


class BufferSection(Section):
    """A switch's packet memory, shared by its ports; without `capacity` each port has its own queue_capacity.

    A queue may take more while it holds less than `alpha` times the free shared memory (Choudhury and Hahne 1998);
    `alpha` may be given by class, others have 1. `reserved`: of each queue, which no other can take.
    """

    capacity: SizeBytes | None = None
    alpha: Alpha | dict[PriorityClass, Alpha] = 1.0
    reserved: SomeBytes | dict[PriorityClass, SomeBytes] = 0

    @property
    def alpha_by_class(self) -> list[float]:
        """Alpha of each of the eight classes."""
        given = self.alpha
        if isinstance(given, dict):
            return [given.get(number, 1.0) for number in range(CLASSES)]
        return [given] * CLASSES

    @property
    def reserved_by_class(self) -> list[int]:
        """Bytes reserved for a queue of each of the eight classes."""
        given = self.reserved
        if isinstance(given, dict):
            return [given.get(number, 0) for number in range(CLASSES)]
        return [given] * CLASSES


class SchedulingSection(Section):
    """Deficit weighted round robin: `quantum` bytes a round, by class; classes not named are strict and go before."""

    quantum: dict[PriorityClass, Annotated[SizeBytes, Field(ge=64, lt=2**31)]] = Field(default={})

    @property
    def quantum_by_class(self) -> list[int]:
        """Quantum of each of the eight classes, 0 for strict ones."""
        return [self.quantum.get(number, 0) for number in range(CLASSES)]


class PfcSection(Section):
    """Priority flow control (IEEE 802.1Qbb) of `classes` on every link; none without classes.

    The far end is paused when what came in by a port in a class holds more than `xoff`, or more than `alpha` times the
    free shared memory, and resumed when it holds `hysteresis` less (by default two frames). `headroom`, by port and
    class, is for what comes after that; by default as much as it takes (`engine.pfc_headroom_bytes`).
    """

    classes: list[PriorityClass] = Field(default=[], max_length=CLASSES)
    xoff: SizeBytes | None = None
    alpha: Alpha | None = None
    hysteresis: SomeBytes | None = None
    headroom: SomeBytes | None = None
    pause_quanta: int = Field(65535, ge=1, le=65535)

    @model_validator(mode="after")
    def _one_threshold(self) -> PfcSection:
        if self.xoff is not None and self.alpha is not None:
            raise ValueError(f"xoff ({self.xoff} B) and alpha ({self.alpha:g}) exclude each other")
        if not self.classes and self.model_fields_set - {"classes"}:
            raise ValueError("classes: which classes are not to lose packets? RoCEv2's data is in class 3")
        return self

    @property
    def pause_alpha(self) -> float:
        """Alpha of the pause threshold, 0 where `xoff` is the threshold."""
        if self.xoff is not None:
            return 0.0
        return 0.125 if self.alpha is None else self.alpha


class CreditsSection(Section):
    """Flow control by credits, as InfiniBand's, of `classes`, its virtual lanes; none without classes.

    Each of them has a `buffer` of its own at every port, of which the far end is told block by block how much is free,
    and sends no more. `links`: only on these, both ways; by default on all.
    """

    classes: list[PriorityClass] = Field(default=[], max_length=CLASSES)
    buffer: Annotated[SizeBytes, Field(le=MOST_CREDIT_BUFFER_BYTES)] = 64 * 1024
    links: Annotated[list[LinkName], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _whole(self) -> CreditsSection:
        if not self.classes and self.model_fields_set - {"classes"}:
            raise ValueError("classes: which classes are virtual lanes? RoCEv2's data is in class 3")
        for name in self.links or ():
            if not LinkChoice.parse(name).both_ways:
                raise ValueError(f"links: '{name}': credits for one way come the other, so name both (<->)")
        return self

    def on(self, node: str, peer: str) -> bool:
        """Return whether the link between two nodes has credits."""
        if not self.classes:
            return False
        return self.links is None or any(LinkChoice.parse(name).takes(node, peer) for name in self.links)
