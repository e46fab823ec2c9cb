"""Benchmarks: `python -m bench`. One module per subject, each with `run(options) -> list[Result]`."""
