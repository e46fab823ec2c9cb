"""What was lost and what could be learned. Everything here is confidential.

`giveaways` looks for the outcome in the columns that are released with it. `utility` and `disclosure` compare
copies with the data; `gauge` says whether they carry any of it. `without` runs the procedure again without an
outcome; `audit` and `attack` hold what is released against what is claimed. `more_draws` foretells how a
price moves, `external` prices fits made elsewhere.
"""
