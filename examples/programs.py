"""The numbers of docs/programs.md: a NumPyro program end to end, and log-likelihoods from elsewhere.

Run it from the repository: python examples/programs.py. The data are simulated, so that prices may be shown.
"""

import warnings

import numpy as np
import numpyro
import numpyro.distributions as dist
from numpy.typing import NDArray

import hedgerow as hr


def payroll(X, group, groups, y=None):  # type: ignore[no-untyped-def]  # as a user would write it
    """Log payroll on log employees, with an effect of each industry."""
    slope = numpyro.sample("slope", dist.Normal(1.0, 0.5))
    level = numpyro.sample("level", dist.Normal(10.0, 2.0))
    spread = numpyro.sample("spread", dist.HalfNormal(0.5))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    with numpyro.plate("industries", groups):
        effect = numpyro.sample("effect", dist.Normal(level, spread))
    with numpyro.plate("records", X.shape[0]):
        numpyro.sample("payroll", dist.LogNormal(effect[group] + slope * X[:, 0], sigma), obs=y)


def program() -> None:
    """A hierarchical program, released under a target."""
    table = hr.datasets.payroll(n=500, seed=3)[["payroll", "employees", "industry"]]
    model = hr.Program(
        payroll,
        data={"group": "industry", "groups": hr.Levels("industry")},
        target_accept=0.95,
        name="payroll",
    )
    synth = hr.Synthesizer(
        "payroll ~ 0 + log(employees)",
        model,
        weights=hr.SoftmaxWeights(risk="oscillation"),
        bound="lipschitz",
        draws=2000,
        seed=1,
    ).fit(table)
    print("## A program end to end")
    print(f"2 max|d|: {synth.lipschitz_epsilon_:.2f}; oscillation: {synth.oscillation_epsilon_:.2f}")
    health = synth.health_
    print(
        f"R-hat {health.r_hat:.3f}, bulk ESS {health.ess_bulk:.0f}, tail ESS {health.ess_tail:.0f}, "
        f"{health.divergences} divergences"
    )
    print(synth.sample().tables[0].head(3).to_string(index=False))


def elsewhere() -> None:
    """Two rounds with matrices, and the trap; the exact model stands in for Stan or PyMC."""
    table = hr.datasets.lognormal(n=2000, seed=1)
    synth = hr.Synthesizer("x ~ z", weights=hr.LinearWeights(shift=0.01), seed=1).fit(table)
    unweighted, weighted = plain_log_lik(synth)
    first = hr.assess(unweighted, weights=hr.LinearWeights(shift=0.01))
    print("## Log-likelihoods from elsewhere")
    print(f"unweighted: {first.epsilon():.1f}; mean weight {first.alpha.mean():.2f}")
    second = hr.assess(weighted, alpha=first.alpha, already_weighted=False)
    print(f"weighted: {second.epsilon():.2f}; Synthesizer: {synth.epsilon_:.2f}")
    from_brms = weighted * first.power
    right = hr.assess(from_brms, alpha=first.alpha, already_weighted=True).epsilon()
    wrong = hr.assess(from_brms, alpha=first.alpha, already_weighted=False).epsilon()
    print(f"brms values, already_weighted=True: {right:.2f}; wrongly False: {wrong:.2f}")


def plain_log_lik(synth: hr.Synthesizer) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What another program would hand over: both fits' matrices, draws × records."""
    weighted = synth.to_arviz(log_likelihood=True)["log_likelihood"]["x"].values[0]
    alone = hr.Synthesizer("x ~ z", standard=hr.Unweighted(), seed=1).fit(
        hr.datasets.lognormal(n=2000, seed=1)
    )
    return alone.to_arviz(log_likelihood=True)["log_likelihood"]["x"].values[0], weighted


if __name__ == "__main__":
    warnings.simplefilter("ignore", FutureWarning)  # ArviZ announces its next version on import
    elsewhere()
    program()
