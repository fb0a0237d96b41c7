"""`python -m weft`: the same as the `weft` command."""

from weft.cli import main

main()
