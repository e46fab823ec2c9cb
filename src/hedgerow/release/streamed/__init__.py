"""Releases of tables larger than memory: `make_release(plan, out, stream=True)`, docs/large.md.

Read `prepare` (the data copied once into leaves, and what takes the place of a table), `fit` (the mechanism
over leaves), `views` (some records with the fit of all, by which the owner is told what was achieved),
`copies` and `records` (files that grow leaf by leaf).

Formal guarantee: copies, claims and the spend that is recorded are those of the same plan in memory. What is
looked at on some records alone is for the owner, and says so.
"""

from hedgerow.release.streamed.prepare import stream_plan

__all__ = ["stream_plan"]
