"""The paper's figures and its table.

Reading order: `picture` (a figure as data, and how it is drawn), `numbered` (the paper's own figures),
`beyond` (the same under every bound), `table`.
"""
