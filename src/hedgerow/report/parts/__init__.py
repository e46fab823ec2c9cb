"""Parts of the owner's page, from top to bottom: `decision`; `prices`, by bound, standard, column and
record; `scrutiny`, whether the price holds; `structure`, copies beside the original and what they are worth;
`lost`, whole tables. Confidential.
"""
