"""From a file to a table to a design, and back. Confidential values pass through here.

Read in this order: `files` (a file becomes an Arrow table, and a copy becomes a file again), `table` (any
dataframe behind one face), `detach` (a copy without the table behind it), `values` (which values a column's
type can hold), `formula` (what a formula may say, checked
before it is applied), `expressions` (conditions and arithmetic of rules), `kinds` (amounts, codes and gaps of
a column), `predictors` (codes, dates and levels in a formula), `design` (outcome and matrix), `chain` (those
of several columns, and which rows are one unit's), `leaves` and `spool` (a table leaf by leaf, in memory or
on a disk).
Nothing here knows a model.
"""
