"""Strict by noisy statistics on the tables of bench/rival: `python -m hedgerow_studies.noisy.rivals`.

One copy from each of the ten tables of each size, from a draw of the posterior, stratified and projected; the
errors are those of docs/rivals.md, beside Unweighted on the same tables.
"""

import argparse
import sys
from collections.abc import Iterator

import numpy as np

from hedgerow import datasets
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.privacy.standards import Unweighted
from hedgerow.randomness import Key
from hedgerow.synthesizer import Synthesizer
from hedgerow_studies.noisy.runs import HIGH, LOW, differences, figures, release, simulated

SIZES, EPSILONS, SEEDS = (200, 2000), (0.2, 0.5, 1.0, 2.0), range(1, 11)


def rows(sizes: tuple[int, ...] = SIZES, seeds: range = SEEDS) -> Iterator[str]:
    """The table, in Markdown, a line at a time."""
    yield f"| n | copy | no privacy | {' | '.join(f'ε = {epsilon:g}' for epsilon in EPSILONS)} |"
    yield "| --- " * (len(EPSILONS) + 3) + "|"
    for records in sizes:
        for sampling in ("stratified", "projected"):
            cells = []
            for epsilon in EPSILONS:
                errors = []
                for seed in seeds:
                    matrix, response = simulated(records, seed)
                    key = Key.from_seed(1000 + seed).child(records).child(int(1000 * epsilon))
                    run = release(
                        make_recipe(matrix, low=LOW, high=HIGH, epsilon=epsilon), response, key.child("noise")
                    )
                    copy = run.drawn_copy(key.child("copy"), sampling=sampling)
                    errors.append(differences(matrix, response, copy))
                cells.append(figures(np.array(errors)))
            plain = _plain(records, seeds) if sampling == "stratified" else ""
            yield f"| {records} | {sampling} | {plain} | {' | '.join(cells)} |"


def _plain(records: int, seeds: range) -> str:
    """Unweighted, stratified."""
    errors = []
    for seed in seeds:
        matrix, response = simulated(records, seed)
        synth = Synthesizer("x ~ z", standard=Unweighted(), sampling="stratified", seed=1000 + seed)
        copy = synth.fit(datasets.lognormal(records, seed=seed))._need().predict()[0]
        errors.append(differences(matrix, response, np.log(copy)))
    return figures(np.array(errors))


def main() -> None:
    """Measure and print."""
    argparse.ArgumentParser(prog="python -m hedgerow_studies.noisy.rivals", description=__doc__).parse_args()
    for text in rows():
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
