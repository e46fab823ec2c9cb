"""What a receiver may conclude from released draws and copies: `intervals`, and
`statistics` from what noisy statistics a release has. Post-processing, all of it.
"""
