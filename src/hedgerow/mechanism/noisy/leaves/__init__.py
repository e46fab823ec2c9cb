"""Noisy statistics leaf by leaf: sums, extremes and draws by row, wherever a table's rows are.

`rows` has the public predictors of all records, held in memory or in leaves elsewhere, and runs tasks over
them; `streamed` goes from settings and leaves to statistics, draws and copies, with nothing in memory that
has one number for each record.
"""
