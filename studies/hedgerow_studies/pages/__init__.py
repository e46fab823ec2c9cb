"""Pages of the documentation that are written, not typed; run from the folder of a checkout.

`claims` (docs/claims.md), `paper` (docs/paper.md, from a finished `hedgerow reproduce`), `figures`.
"""
