"""Rewrite the tables of docs/spec and the layouts of the Wireshark dissector: `python -m weft.wire` in a checkout."""

from __future__ import annotations

from pathlib import Path

from weft.wire.made_text import files_with_parts, with_parts_made


def main() -> None:
    """Write the files that have changed, and name them."""
    for path in files_with_parts(Path(__file__).resolve().parents[2]):
        before = path.read_text(encoding="utf-8")
        after = with_parts_made(before, str(path))
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(path)


if __name__ == "__main__":
    main()
