"""`python -m hedgerow_studies --out results` is `hedgerow reproduce --out results`."""

import sys

from hedgerow.cli import main

if __name__ == "__main__":  # worker processes import this module and must not start another run
    sys.argv.insert(1, "reproduce")
    main()
