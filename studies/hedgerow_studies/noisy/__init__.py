"""Strict privacy by noisy statistics, measured: `runs` (what they share), `ranges`, `classes`,
`rivals`, `tables`, `zeros`.
"""
