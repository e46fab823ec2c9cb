"""The paper's empirical sentences, put to the test.

Reading order: `checks` (what a claim is, and how it is decided), one module per part of the paper (`story1`
with `utility` and `contraction`, `story2`, `story3`, `application`), `verdicts` (claims.json and claims.md).
"""
