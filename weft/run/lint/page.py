"""Rewrite the table of rules in docs/lint.md: `python -m weft.run.lint.page` in a checkout."""

from __future__ import annotations

import re
from pathlib import Path

from weft.paths import ROOT
from weft.run.lint import RULES

PAGE = ROOT / "docs" / "lint.md"
_TABLE = re.compile(r"(?<=<!-- rules -->\n).*?(?=<!-- end -->)", re.DOTALL)


def with_table(text: str) -> str:
    """Return the page's text with the table of all rules."""
    rows = [f"| `{rule.name}` | {rule.when} | {rule.reason} |" for rule in RULES.values()]
    table = "\n".join(["| rule | finds | because |", "|---|---|---|", *rows])
    return _TABLE.sub(lambda _: f"\n{table}\n\n", text)


def main(page: Path = PAGE) -> None:
    """Write the page if its table has changed, and name it."""
    before = page.read_text(encoding="utf-8")
    after = with_table(before)
    if after != before:
        page.write_text(after, encoding="utf-8")
        print(page)


if __name__ == "__main__":
    main()
