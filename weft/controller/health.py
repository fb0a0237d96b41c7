"""Health check of a switch: does it answer, run the right program and hold the planned entries, and what it drops."""

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
    """Result of a health check.

    Attributes:
        switch: name of the switch.
        problems: problems found; empty if it is healthy.
        entries: number of entities on the switch.
        missing: planned entities (except jobs') that the switch lacks.
        changed: planned entities with another action on the switch, as after `ecn set`.
        drops: packets dropped by the program, by reason.
        answers: whether the switch answered.
        links_down: neighbours at the other ends of links that are down.
        links_faulty: neighbours at the other ends of lossy or slow links that stay in use because hosts need them.

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
        """Whether no problems were found."""
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
    """Check one switch; its problems are returned, not raised.

    Args:
        session: a session with the switch, used only for reading.
        pipeline: expected program; None accepts any.
        planned: expected entities; None accepts anything.
        links_down: neighbours at the other ends of links that are down.
        links_faulty: neighbours at the other ends of lossy or slow links, each with the problem.

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
        desired = {key: entity for key, entity in session.encode(planned or []).items() if not entity.is_default}
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
