"""Stan next to hedgerow's families: effective draws per second of the same posterior (README.md)."""
