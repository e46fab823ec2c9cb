"""From a plan to a folder of which `public/` may leave the building.

Read in this order: `plan` (what is to be done), `prepare` (the table it speaks of), `make` (the order that is
the guarantee), `folder`, `certificate`, `pages` (for those who receive it and those who decide about it),
`confidential`, `ledger` (what was spent), `verify`, `sign`, `registry` (a certificate for others' lists),
`trial` (what a plan would cost, without a release). `text` and `document` are how plans and certificates are
read.
"""
