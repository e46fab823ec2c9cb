"""How often intervals cover the truth: `measure` (one sample), `report` (all of them, and the page's tables).

`corrected` is the older study of corrected draws alone, whose figures docs/bias.md has.
"""
