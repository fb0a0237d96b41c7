"""Lets `python -m weft` run the `weft` command."""

from weft.cli import main

main()
