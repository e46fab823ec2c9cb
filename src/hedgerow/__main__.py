"""`python -m hedgerow` is the command `hedgerow`."""

from hedgerow.cli import main

main()
