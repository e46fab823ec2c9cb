"""The pages of a release for people who did not make it: `public`, which goes out with the copies, says how
they are laid out (`layout`) and how to analyse them (`usage`); `board`, two sheets for those who decide about
it, printed by `printing` where a browser is found.
"""
