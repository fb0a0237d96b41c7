"""The skeleton of every page: head, sections, scripts; it loads nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from weft.errors import EnvironmentLacksError
from weft.hints import install_extra
from weft.results.report_parts import Cell, ReportPart, ReportTable
from weft.system.writing import written_whole

IN_FORCE = "effective"
"""Key of a run's provenance: its effective parameters."""
_ASSETS = Path(__file__).parent / "assets"


def html_page(
    title: str,
    verdict: str,
    subtitle: str,
    sections: Iterable[str],
    data: Mapping[str, Any],
    valid: bool = True,
    scripts: Sequence[str] = (),
) -> str:
    """Return a page.

    Args:
        title: in the head and as heading, plain text.
        verdict: next to the title, HTML.
        subtitle: below it, plain text.
        sections: HTML, from top to bottom.
        data: what assets/page.js draws: `figures` by name, `phases`, `events`.
        scripts: assets that run after assets/page.js and assets/zoom.js.
        valid: whether its figures are meaningful; if not, each heading says so.

    Raises:
        EnvironmentLacksError: there are figures to draw, and plotly is missing.
    """
    page = Template(asset("page.html"))
    return page.substitute(
        title=escape(title),
        style=asset("page.css"),
        verdict=verdict,
        validity="valid" if valid else "invalid",
        subtitle=escape(subtitle),
        sections="\n".join(each for each in sections if each),
        data=json_in_script(data),
        plotly=_plotly() if data["figures"] else "",
        script="\n".join(asset(name) for name in ("page.js", "zoom.js", *scripts)),
    )


def write_page(page: str, target: Path) -> Path:
    """Write a page and return where it is; EnvironmentLacksError: it cannot be written there."""
    with written_whole(target) as partial:
        partial.write_text(page, encoding="utf-8")
    return target


def _plotly() -> str:
    if importlib.util.find_spec("plotly") is None:
        raise EnvironmentLacksError(f"weft report draws with plotly: {install_extra('report')}")
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def asset(name: str) -> str:
    """Return a part of the pages: a style or a script."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def json_in_script(data: Any) -> str:
    """Return JSON that is safe in a script element: nothing in it looks like markup.

    Sequences and mappings of any kind are lists and objects in it, NumPy's arrays and numbers plain ones.
    """
    return json.dumps(data, separators=(",", ":"), default=_plain).replace("<", "\\u003c")


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"a figure has a {type(value).__name__} (valid: numbers, texts, and sequences of them)")


class Section:
    """Sections of a page as HTML."""

    @staticmethod
    def figure(key: str, title: str, text: str, note: str) -> str:
        """Return the place of a figure that assets/page.js draws."""
        note = f' <span class="note">{escape(note)}.</span>' if note else ""
        said = f"<p>{escape(text)}{note}</p>" if text or note else ""
        return (
            f"<section><h2>{escape(title)}</h2>{said}"
            f'<div class="figure" id="figure-{key}" role="img" aria-label="{escape(title)}"></div>'
            f'<div class="chips" id="chips-{key}"></div></section>'
        )

    @staticmethod
    def panels(title: str, text: str, note: str, panels: Mapping[str, str]) -> str:
        """Return one section with a place for each of several figures, by their keys with a heading for each."""
        note = f' <span class="note">{escape(note)}.</span>' if note else ""
        said = f"<p>{escape(text)}{note}</p>" if text or note else ""
        places = "\n".join(
            f'<div class="panel"><h3>{escape(heading)}</h3><div class="figure" id="figure-{key}" role="img" '
            f'aria-label="{escape(f"{title}, {heading}")}"></div><div class="chips" id="chips-{key}"></div></div>'
            for key, heading in panels.items()
        )
        return f'<section><h2>{escape(title)}</h2>{said}<div class="panels">{places}</div></section>'

    @staticmethod
    def sentences(title: str, lines: Sequence[str], is_notice: bool = True) -> str:
        """Return a section of a list of sentences, set off as a notice by default; "" without any."""
        items = "".join(f"<li>{escape(line)}</li>" for line in lines)
        kind = "notice" if is_notice else "sentences"
        return f'<section class="{kind}"><h2>{escape(title)}</h2><ul>{items}</ul></section>' if items else ""

    @staticmethod
    def part(name: str, part: ReportPart) -> str:
        """Return a part under its own heading."""
        if isinstance(part, ReportTable):
            return Section.table(part)
        return Section.figure(name, part.title, part.text, part.note)

    @staticmethod
    def folded(table: ReportTable) -> str:
        """Return a table below a line that readers open."""
        content = Section.table(table).replace(f"<h2>{escape(table.title)}</h2>", "", 1)
        return f"<details><summary>{escape(table.title)} ({len(table.rows)})</summary>{content}</details>"

    @staticmethod
    def table(table: ReportTable, links: Mapping[str, str] | None = None) -> str:
        """Return a table; cells of the first column with a text in `links` lead to these pages."""
        note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
        head = "".join(
            f'<th scope="col" class="{_kind(cell)}">{escape(column)}</th>'
            for cell, column in zip(table.rows[0], table.columns, strict=True)
        )
        rows = "\n".join(f"<tr>{_cells(row, links or {})}</tr>" for row in table.rows)
        return (
            f'<section class="table"><h2>{escape(table.title)}</h2>{note}<div class="scroll"><table><thead><tr>{head}'
            f"</tr></thead><tbody>{rows}</tbody></table></div></section>"
        )


def _kind(cell: Cell) -> str:
    return "number" if isinstance(cell, int | float) else "text"


def _cells(row: Sequence[Cell], links: Mapping[str, str]) -> str:
    texts = [escape(_text(cell)) for cell in row]
    if (target := links.get(str(row[0]))) is not None:
        texts[0] = f'<a href="{escape(target)}">{texts[0]}</a>'
    return "".join(f'<td class="{_kind(cell)}">{text}</td>' for cell, text in zip(row, texts, strict=True))


def _text(cell: Cell) -> str:
    return f"{cell:,}".replace(",", "\u202f") if isinstance(cell, int) else str(cell)


def made_by_table(made_by: Mapping[str, Any]) -> str:
    """Return the section on what made a run."""
    return _parameters("made-by", "Parameters of the run", {key: made_by[key] for key in made_by if key != IN_FORCE})


def in_force_table(made_by: Mapping[str, Any]) -> str:
    """Return the section on the parameters in force, defaults and derived ones included; "" where there are none."""
    in_force = made_by.get(IN_FORCE)
    return _parameters("in-force", "Parameters in force", flat(in_force)) if isinstance(in_force, dict) else ""


def flat(value: Any, place: str = "") -> dict[str, Any]:
    """Return values by their place; lists of plain values stay whole."""
    nested = isinstance(value, list) and any(isinstance(each, dict | list) for each in value)
    if isinstance(value, dict) and value:
        items = {f"{place}.{key}" if place else str(key): each for key, each in value.items()}
    elif nested:
        items = {f"{place}[{index}]": each for index, each in enumerate(value)}
    else:
        return {place: value}
    return {key: plain for name, each in items.items() for key, plain in flat(each, name).items()}


def _parameters(key: str, title: str, parameters: Mapping[str, Any]) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        f"<td>{escape(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))}</td></tr>"
        for name, value in sorted(parameters.items())
    )
    return (
        f'<section class="table parameters" id="{key}">\n  <h2>{title}</h2>\n'
        f'  <div class="scroll"><table><tbody>{rows}</tbody></table></div>\n</section>'
    )
