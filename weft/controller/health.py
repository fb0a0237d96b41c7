"""Health of a switch: whether it answers, runs the right program and holds the planned entries, and what it drops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from weft.controller.counters import read_counters
from weft.controller.entities import Entity
from weft.controller.errors import ControllerError, SwitchUnavailableError
from weft.controller.installed import read_installed
from weft.controller.pipeline import Pipeline
from weft.controller.session import SwitchSession


@dataclass(frozen=True)
class SwitchHealth:
    """What was found.

    Attributes:
        switch: name.
        problems: what is wrong with it; empty if it is healthy.
        entries: entities that it holds.
        missing: of the plan (jobs apart), how many it does not hold.
        changed: of the plan, how many it holds with another action, as after `ecn set`.
        drops: packets dropped by the program, by reason.
        answers: whether it answered.
        links_down: the neighbours to which its links are down.
        links_faulty: the neighbours to which its links are lossy or slow, and in use because hosts need them.

    """

    switch: str
    problems: tuple[str, ...] = ()
    entries: int = 0
    missing: int = 0
    changed: int = 0
    drops: Mapping[str, int] = field(default_factory=dict)
    answers: bool = True
    links_down: tuple[str, ...] = ()
    links_faulty: tuple[str, ...] = ()

    @property
    def is_well(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


async def check_switch(
    session: SwitchSession,
    pipeline: Pipeline | None,
    planned: list[Entity] | None,
    links_down: Sequence[str] = (),
    links_faulty: Sequence[tuple[str, str]] = (),
) -> SwitchHealth:
    """Check one switch; never raises for what is wrong with it.

    Args:
        session: to the switch; it only reads.
        pipeline: program it should run; None accepts any.
        planned: what it should hold; None accepts anything.
        links_down: the neighbours to which its links are down.
        links_faulty: the neighbours to which its links are lossy or slow, and what is wrong with these.

    """
    found = await _check_program(session, pipeline, planned)
    if not found.answers:
        return found
    of_links = [f"its link to {peer} is down" for peer in links_down]
    of_links += [f"its link to {peer} is {what}" for peer, what in links_faulty]
    return replace(
        found,
        problems=(*found.problems, *of_links),
        links_down=tuple(links_down),
        links_faulty=tuple(peer for peer, _ in links_faulty),
    )


async def _check_program(
    session: SwitchSession, pipeline: Pipeline | None, planned: list[Entity] | None
) -> SwitchHealth:
    try:
        config = await session.read_pipeline()
        if config is None:
            return SwitchHealth(session.name, ("no program is loaded",))
        if pipeline is not None and config.p4info != pipeline.p4info:
            return SwitchHealth(session.name, ("its program has another P4Info",))
        installed = await read_installed(session)
        desired = {
            key: entity for key, entity in session.encode(planned or []).items() if not entity.is_default
        }
        missing = sum(key not in installed for key in desired)
        return SwitchHealth(
            session.name,
            problems=(f"{missing} planned entries are missing",) if missing else (),
            entries=len(installed),
            missing=missing,
            changed=sum(key in installed and installed[key] != entity for key, entity in desired.items()),
            drops={reason: count.packets for reason, count in (await read_counters(session)).drops.items()},
        )
    except ControllerError as error:
        answers = not isinstance(error, SwitchUnavailableError)
        return SwitchHealth(session.name, (str(error),), answers=answers)
