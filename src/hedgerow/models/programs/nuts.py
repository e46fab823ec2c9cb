"""The No-U-Turn sampler over a weighted potential: NumPyro's or nutpie's, chains side by side."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from hedgerow.arrays import Array
from hedgerow.errors import HealthError, HedgerowError
from hedgerow.models.programs.potential import Potential, x64
from hedgerow.progress import report
from hedgerow.randomness import Key

ChainName = Literal["nutpie", "numpyro"]
SamplerName = Literal["nutpie", "numpyro", "independent"]  # the last for named families
Start = Callable[[int], Array]  # a chain's number, to where it starts
_STARTS = 100  # candidate starting points per chain
_PULLS = 200  # steps at most that bring a starting point nearer
_SHORTEST = 0.02  # step below which a starting point is near enough, on the unconstrained scale
_DENSE = 64  # parameters up to which NumPyro adapts a full mass matrix
_POLL = 0.1  # seconds between two reports of progress
TRIES = 3  # of a fit, before it is refused


@dataclass(frozen=True)
class SamplerSettings:
    """How to run the chains; public."""

    sampler: ChainName
    chains: int
    warmup: int
    target_accept: float
    thin: int = 1

    def patient(self) -> "SamplerSettings":
        """The second try: longer warm-up, smaller steps, and twice the draws of which half are kept."""
        accept = max(0.95, (1 + self.target_accept) / 2)
        return replace(self, warmup=2 * self.warmup, target_accept=accept, thin=2 * self.thin)

    def last(self, *, diverged: bool) -> "SamplerSettings":
        """The third try, by what was wrong with the second.

        Divergences ask for smaller steps. Where a posterior ends at a steep wall (a scale under few or
        lightly weighted records), steps that suit its middle are unstable beyond some height of the wall;
        that height grows with 1/step², and the share of draws that reach it falls exponentially. Chains that
        disagree without diverging cross between modes too rarely. Smaller steps do not help: they get longer.
        """
        if diverged:
            accept = max(0.99, (1 + self.target_accept) / 2)
            return replace(self, warmup=2 * self.warmup, target_accept=accept, thin=2 * self.thin)
        return replace(self, warmup=2 * self.warmup, thin=4 * self.thin)


@dataclass(frozen=True, repr=False)
class Chains:
    """Draws on the unconstrained scale, by chain; confidential."""

    positions: Array  # chain, draw, dimension
    divergences: int
    unthinned: Array | None = None  # the same with the draws that thinning leaves out

    def __repr__(self) -> str:
        return f"Chains({self.positions.shape[0]} of {self.positions.shape[1]} draws, confidential)"


def sample(potential: Potential, settings: SamplerSettings, *, draws: int, key: Key) -> Chains:
    """`draws` kept draws per chain, every `thin`-th one."""

    def start(number: int) -> Array:
        uniforms = key.child("start").child(number).stream().uniform((_STARTS, potential.dimensions))
        return move_nearer(potential, potential.start(uniforms))

    run = _numpyro if settings.sampler == "numpyro" else _nutpie
    found = run(potential, settings, draws * settings.thin, start, key.child("chains").integer())
    kept = found.positions[:, settings.thin - 1 :: settings.thin]
    return Chains(np.ascontiguousarray(kept[:, :draws]), found.divergences, found.positions)


def move_nearer(potential: Potential, start: Array) -> Array:
    """A starting point from which a chain can move: uphill as long as a step gains one per record.

    Where a likelihood falls off exponentially, a random point may lie so far out that gradients of 1e27 set
    the first mass matrix, and the chain never moves again. Uphill steps do not change what is sampled, and
    each chain takes its own: where there are several modes, R-hat still sees chains that disagree.
    """
    enough = potential.dimensions + float(np.asarray(potential.power).sum())
    place, (value, slope) = start, potential.value_and_grad(start)
    step = potential.dimensions**0.5
    for _ in range(_PULLS):
        if step < _SHORTEST:
            break
        direction = slope / max(float(np.abs(slope).max()), 1e-300)  # first, so that its square is finite
        further = place + step * direction / max(float(np.linalg.norm(direction)), 1e-300)
        found, turned = potential.value_and_grad(further)
        better = bool(np.isfinite(found) and np.isfinite(turned).all() and found > value)
        if not better or found - value < enough:
            step /= 2
        if better:
            place, value, slope = further, found, turned
    return place


def _nutpie(potential: Potential, settings: SamplerSettings, draws: int, start: Start, seed: int) -> Chains:
    import nutpie  # brings ArviZ and its plots: seconds, which independent draws do not wait for
    from nutpie.compiled_pyfunc import from_pyfunc

    size = potential.dimensions
    drawn = [0]
    problems: list[Exception] = []

    def expand(*_: Any) -> Callable[..., dict[str, Array]]:
        def count(position: Array, **_: Any) -> dict[str, Array]:
            drawn[0] += 1  # called once per draw: progress is counted here, in no particular order
            return {"position": position}

        return count

    model = from_pyfunc(
        size,
        lambda: _note_problems(potential.value_and_grad, problems),
        expand,
        [np.dtype("float64")],
        [(size,)],
        ["position"],
        # By the number nutpie gives each chain: chains ask in the order in which their threads happen to run.
        make_initial_point_fn=_note_problems(start, problems),
    )
    running = nutpie.sample(
        model,
        draws=draws,
        tune=settings.warmup,
        chains=settings.chains,
        cores=min(settings.chains, os.cpu_count() or 1),
        seed=seed,
        save_warmup=False,
        progress_bar=False,
        blocking=False,
        target_accept=settings.target_accept,
        # Regression coefficients on raw predictors are strongly correlated: with a diagonal mass matrix the
        # table of bench/nuts.py gave a tenth of the effective draws per second at n = 2,000.
        low_rank_modified_mass_matrix=True,
    )
    result = None
    try:
        while result is None:
            try:
                result = running.wait(timeout=_POLL)
            except TimeoutError:
                _report_drawn(drawn[0], settings, draws)
    except BaseException as problem:
        # Where two chains fail at once nutpie may panic instead of raising, which is no Exception.
        panicked = bool(problems) and not isinstance(problem, KeyboardInterrupt | SystemExit)
        if not panicked and not isinstance(problem, RuntimeError):
            running.cancel()  # an interrupt must stop the background threads, too
            raise
        first = problems[0] if problems else problem
        if isinstance(first, HedgerowError):
            raise first from None
        raise HealthError(
            f"nutpie could not sample the program ({type(first).__name__}). Rescale the outcome or give "
            "tighter priors; sampler='numpyro' may tell more."
        ) from None
    _report_drawn(settings.chains * (settings.warmup + draws), settings, draws)
    return Chains(
        np.asarray(result["posterior"]["position"], dtype=np.float64),
        int(np.asarray(result["sample_stats"]["diverging"]).sum()),
    )


def _note_problems(function: Callable[..., Any], problems: list[Exception]) -> Callable[..., Any]:
    """The function, its exceptions noted, and kept from nutpie, which prints them when it panics."""

    def call(*given: Any) -> Any:
        try:
            return function(*given)
        except Exception as problem:  # whatever a user's function raises
            problems.append(problem)
            raise RuntimeError("noted by hedgerow") from None

    return call


def _report_drawn(count: int, settings: SamplerSettings, draws: int) -> None:
    """Chains count together: warm-up is over when as many draws were made as it has."""
    warmup, total = settings.chains * settings.warmup, settings.chains * draws
    report("warm-up", min(count, warmup), warmup)
    if count > warmup:
        report("sampling", count - warmup, total)


def _numpyro(potential: Potential, settings: SamplerSettings, draws: int, start: Start, seed: int) -> Chains:
    from numpyro.infer import MCMC, NUTS

    with x64(True):
        kernel = NUTS(
            potential_fn=potential,
            target_accept_prob=settings.target_accept,
            dense_mass=potential.dimensions <= _DENSE,  # for the same reason
        )
        mcmc = MCMC(
            kernel,
            num_warmup=settings.warmup,
            num_samples=draws,
            num_chains=settings.chains,
            chain_method="vectorized" if settings.chains > 1 else "sequential",
            progress_bar=False,
        )
        report("warm-up", 0, settings.chains * settings.warmup)
        starts = np.stack([start(chain) for chain in range(settings.chains)])
        first = jnp.asarray(starts if settings.chains > 1 else starts[0])
        mcmc.warmup(jax.random.key(seed), init_params=first, extra_fields=("diverging",))
        report("warm-up", settings.chains * settings.warmup, settings.chains * settings.warmup)
        mcmc.run(mcmc.post_warmup_state.rng_key, extra_fields=("diverging",))
        report("sampling", settings.chains * draws, settings.chains * draws)
        positions = np.asarray(mcmc.get_samples(group_by_chain=True), dtype=np.float64)
        return Chains(positions, int(np.asarray(mcmc.get_extra_fields()["diverging"]).sum()))
