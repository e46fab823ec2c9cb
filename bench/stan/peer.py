"""Run in Stan's environment: `python peer.py program.stan data.json draws.npy chains warmup draws`."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import stan


def main() -> None:
    program, data, out = (Path(name) for name in sys.argv[1:4])
    chains, warmup, draws = (int(count) for count in sys.argv[4:7])
    began = time.perf_counter()
    built = stan.build(program.read_text(), data=json.loads(data.read_text()), random_seed=1)
    compiling = time.perf_counter() - began
    began = time.perf_counter()
    fit = built.sample(num_chains=chains, num_warmup=warmup, num_samples=draws)
    seconds = time.perf_counter() - began
    rows = np.vstack([fit["beta"], fit["scale" if "scale" in fit else "share"]])
    np.save(out, rows.reshape(len(rows), draws, chains).transpose(2, 1, 0))  # chain, draw, parameter
    print("RESULT", json.dumps([seconds, compiling]))


if __name__ == "__main__":
    main()
