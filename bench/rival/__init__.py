"""AIM and MST next to hedgerow at the same ε on the same tables. README.md says how to run it."""
