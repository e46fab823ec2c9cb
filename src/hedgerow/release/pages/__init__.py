"""The pages of a release for people who did not make it: `public`, which goes out with the copies, and
`board`, two sheets for those who decide about it, printed by `printing` where a browser is found.
"""
