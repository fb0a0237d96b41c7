"""The example of docs/jobs.md prints what the page says."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "jobs.md"


def test_the_example_prints_what_the_page_shows():
    text = PAGE.read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    shown = re.search(r"prints\n\n```\n(.*?)```", text, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code.group(1), {})
    assert printed.getvalue() == shown.group(1)
