"""`python -m hedgerow.studies --out results`."""

from hedgerow.studies.cli import main

if __name__ == "__main__":  # worker processes import this module and must not start another run
    main()
