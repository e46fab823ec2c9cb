"""hedgerow: synthetic copies of a confidential table, with a formal privacy guarantee."""
