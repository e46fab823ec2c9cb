"""The paper, run and judged: every figure, the table, and a verdict on every empirical sentence.

Reading order: `setup` (the paper's synthesizers and sizes), `samples` and `application` (one replicate),
`authors_prior`, `tasks` (all replicates, spread over processes), `store` and `bars`, `figures`, `claims`,
`reproduce` (everything, in order).
"""
