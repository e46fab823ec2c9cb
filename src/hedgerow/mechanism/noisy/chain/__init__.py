"""Noisy statistics of several protected columns, one after the other, for a row that is protected as a whole.

Read in this order: `tasks` (what is settled of each column beforehand, and its part of ε), `classes` (noisy
sums of classes, and of kinds of cells that have no amount), `handed` (what a column hands on to later ones:
clipped residuals about released lines), `rows` (public rows and readers of values, leaf by leaf), `release`
(the only caller of these readers), `draws` (draws given what was released, and copies from them),
`coefficients` (residuals multiplied out), `cells` (what a column's cells can be), `encode` and `run` (from
settings and a table to all this), `streamed` (the same from leaves, wherever they are).
"""
