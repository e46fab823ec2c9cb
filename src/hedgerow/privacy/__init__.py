"""What is promised: standards, ranges, weights, bounds and their words. Nothing here is confidential.

Read in this order: `ranges` (what the public knows), `standards` (a pair: power and sensitive part),
`sensitive` (that pair as coefficients), `weights` (from risk to weight), `bounds` (what a price supports),
`strict/` and `censored` (standards that bring their own bound), `columns` (what is protected), `presets`,
`terms` and `settings` (all that a release is told beforehand), `claims` (the words), `guarantee` (what may be
claimed).
"""
