"""Reading a NumPyro program before it is used, and refusing what powers on records cannot mean."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist
from numpyro import handlers
from numpyro.distributions import biject_to

from hedgerow.arrays import Array
from hedgerow.errors import DataError, SettingError
from hedgerow.models.programs.potential import Arrays, Site, Traced, unwrap, x64

Shapes = tuple[tuple[str, tuple[int, ...], str], ...]  # name, shape and type of each array argument
Fixed = tuple[tuple[str, int], ...]  # name and value of each whole-number argument

_REMEDY = "See docs/programs.md, 'What a program may do'."


@lru_cache(maxsize=64)
def read(function: Callable[..., Any], response: str, shapes: Shapes, fixed: Fixed, records: int) -> Traced:
    """The sites of a program, from shapes alone: no number of the outcome is looked at here."""
    with x64(True):
        arrays = {name: jax.ShapeDtypeStruct(shape, dtype) for name, shape, dtype in shapes}
        outcome = {response: jax.ShapeDtypeStruct((records,), "float64")}
        observed = _sites(function, dict(fixed), arrays | outcome, "the outcome given")
        blank = _sites(function, {**dict(fixed), response: None}, arrays, f"{response}=None")
        _refuse_kinds(observed)
        name = _find_response(observed, records)
        latents = tuple(_latent(site) for key, site in blank.items() if _is_latent(site) and key != name)
        if name not in blank or {s.name for s in latents} != {
            k for k, s in observed.items() if _is_latent(s)
        }:
            raise SettingError(
                f"The program has other sample sites with {response}=None than with the outcome given. It "
                f"must be the same model in both cases. {_REMEDY}"
            )
        _refuse_record_level(function, {**dict(fixed), response: None}, arrays, latents, records)
        discrete = bool(observed[name]["fn"].support.is_discrete)
    if not latents:
        raise SettingError(f"The program has no latent site, so there is nothing to fit. {_REMEDY}")
    return Traced(function, response, fixed, name, discrete, latents)


@lru_cache(maxsize=64)
def read_own(function: Callable[..., Any], response: str, shapes: tuple[Any, ...]) -> Traced:
    """The sites of one of hedgerow's own programs, which need no checking."""

    def argument(shape: Any) -> Any:
        if shape and isinstance(shape[0], tuple):
            return tuple(argument(one) for one in shape)
        return jax.ShapeDtypeStruct(shape, "float64")

    with x64(True):
        arrays = {name: argument(shape) for name, shape in shapes}
        found = _sites(function, {"y": None}, arrays, "y=None")
        inner = [site for name, site in found.items() if name != response]
        latents = tuple(_latent(site) for site in inner if _is_latent(site))
        discrete = bool(found[response]["fn"].support.is_discrete)
    return Traced(function, "y", (), response, discrete, latents)


def check(traced: Traced, arrays: Arrays, values: Array, outcome: str) -> None:
    """Numbers at two test points: the outcome may be used at the response site only."""

    def probe(position: Any, given: Arrays, x: Any) -> dict[str, Any]:
        latents = traced.constrain(position, given)
        held, scored = _with_outcome(traced, latents, given, x)
        return {
            "prior": traced.log_prior(position, given),
            "prior, other response": traced.log_prior(position, given, 1.0),
            "prior, no outcome": _with_outcome(traced, latents, given, None)[0],
            "prior, outcome": held,
            "score, no outcome": traced.distribution(latents, given).log_prob(x),
            "score, outcome": scored,
            # Every second value exchanged for its neighbour's, and then the others.
            "score, others moved": [
                traced.distribution(latents, given).log_prob(jnp.where(stays, x, jnp.roll(x, 1)))
                for stays in (even, ~even)
            ],
        }

    even = np.arange(len(values)) % 2 == 0
    outside = np.zeros(len(values), dtype=np.bool_)
    with x64(True):
        # Compiled, so that the program sees no number it could quote in an error.
        compiled = jax.jit(probe)
        for ends in ((-0.7, 0.9), (0.3, -0.4)):
            position = np.linspace(*ends, traced.dimensions)
            found = {name: np.asarray(value) for name, value in compiled(position, arrays, values).items()}
            stay = found.pop("score, others moved")
            if not _same(np.where(even, *stay), found["score, no outcome"]):
                raise SettingError(
                    f"Response site '{traced.response}' gives a record another log density when the outcome "
                    "of another record changes. A record's power, window and price belong to its own "
                    "outcome: use a distribution of single records."
                )
            if not _same(found["score, outcome"], found["score, no outcome"]) or not _same(
                found["prior, outcome"], found["prior, no outcome"]
            ):
                raise SettingError(
                    f"The program uses the outcome '{outcome}' outside its response site '{traced.response}'"
                    ": a prior, a mean or a factor changes with it, which would leak it unweighted. Remove "
                    "centring or scaling by the outcome; predictors are public and may be used freely."
                )
            if not _same(found["prior, other response"], found["prior"]):
                raise SettingError(
                    f"The program uses the value of its response site '{traced.response}' further on, "
                    f"which would bring the outcome in unweighted. {_REMEDY}"
                )
            outside |= ~np.isfinite(found["score, no outcome"])
    count = int(outside.sum())
    if count:
        raise DataError(
            f"Column '{outcome}' has {count} values in {len(values)} rows to which the program's response "
            "site gives no finite density. Choose a distribution whose support holds the outcome."
        )


def _sites(
    function: Callable[..., Any], fixed: dict[str, Any], shapes: dict[str, Any], when: str
) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def run(arrays: dict[str, Any]) -> Any:
        seeded = handlers.seed(function, jax.random.key(0))
        found.update(handlers.trace(seeded).get_trace(**arrays, **fixed))
        return jnp.zeros(())

    try:
        jax.eval_shape(run, shapes)
    except Exception as problem:  # a user's function may fail in any way; shapes only, so no value is quoted
        text = str(problem).split("\n")[0][:160]
        raise SettingError(
            f"The program does not run with {when} ({type(problem).__name__}: {text}). It must accept arrays "
            "of the table's length and None for the outcome; group counts come in as Levels('column')."
        ) from None
    return found


def _refuse_kinds(sites: Mapping[str, Any]) -> None:
    for name, site in sites.items():
        kind = site["type"]
        if kind == "param":
            raise SettingError(
                f"Site '{name}' is a numpyro.param, which has no prior. Give it a sample site."
            )
        if kind == "control_flow":
            raise SettingError(
                f"Site '{name}' is a scan or cond, whose sites cannot be weighted by record. Write the model "
                "with arrays and plates."
            )
        if kind == "plate" and site["args"][1] not in (None, site["args"][0]):
            raise SettingError(
                f"Plate '{name}' takes {site['args'][1]} of {site['args'][0]} at a time. Powers belong to "
                "whole tables: remove subsample_size."
            )
        if kind == "sample" and not site["is_observed"] and site["fn"].support.is_discrete:
            raise SettingError(
                f"Latent site '{name}' is discrete, which NUTS cannot sample. Sum it out, for instance with "
                "MixtureSameFamily."
            )


def _find_response(sites: Mapping[str, Any], records: int) -> str:
    # numpyro.factor is an observed site of distribution Unit; it belongs to the prior.
    observed = [
        name
        for name, site in sites.items()
        if site["type"] == "sample" and site["is_observed"] and not isinstance(site["fn"], dist.Unit)
    ]
    if not observed:
        raise SettingError(
            "The program has no observed site: give one sample site obs=y, where y is the argument that "
            f"receives the outcome. {_REMEDY}"
        )
    if len(observed) > 1:
        raise SettingError(
            f"The program has {len(observed)} observed sites ({', '.join(observed)}); one is allowed: "
            "a record's power belongs to one likelihood."
        )
    name, site = observed[0], sites[observed[0]]
    if site["scale"] is not None:
        raise SettingError(
            f"Response site '{name}' is inside handlers.scale or a subsampled plate. Take it out: "
            "hedgerow puts the powers on, and two weights would be counted as one."
        )
    inner = site["fn"]
    while not isinstance(inner, dist.MaskedDistribution) and hasattr(inner, "base_dist"):
        inner = inner.base_dist
    if isinstance(inner, dist.MaskedDistribution):
        raise SettingError(
            f"Response site '{name}' is masked. A masked record would be priced as if it were used: drop "
            "those rows, or give them weight 0."
        )
    single = unwrap(site["fn"])
    try:
        shape = jnp.broadcast_shapes(single.batch_shape, (records, *single.event_shape))
    except ValueError:
        shape = single.batch_shape
    if shape != (records,):
        raise SettingError(
            f"Response site '{name}' gives log densities of shape {shape} for {records} records; it must be "
            "one per record. Check for a mean of shape (n, 1), or a joint distribution over records."
        )
    return name


def _refuse_record_level(
    function: Callable[..., Any],
    fixed: dict[str, Any],
    arrays: dict[str, Any],
    latents: tuple[Site, ...],
    records: int,
) -> None:
    """A latent value per record would carry that record's outcome into its own prediction."""
    longer = {
        name: jax.ShapeDtypeStruct((records + 1, *array.shape[1:]), array.dtype)
        for name, array in arrays.items()
    }
    try:
        other = _sites(function, fixed, longer, "one record more")
        grown = [site.name for site in latents if tuple(other[site.name]["fn"].shape()) != site.shape]
    except (SettingError, KeyError):
        # The program holds arrays of its own of the table's length: judge by the shapes at hand.
        grown = [site.name for site in latents if records in site.shape]
    if grown:
        raise SettingError(
            f"Latent sites {', '.join(grown)} have one value per record. A record's own effect would carry "
            "its outcome into the synthetic value, outside the price. Use effects of groups."
        )


def _latent(site: Mapping[str, Any]) -> Site:
    shape = tuple(site["fn"].shape())
    try:
        free = tuple(biject_to(site["fn"].support).inverse_shape(shape))
    except NotImplementedError:
        raise SettingError(
            f"Latent site '{site['name']}' has a support NumPyro cannot unconstrain. Choose another prior."
        ) from None
    return Site(site["name"], shape, free)


def _with_outcome(traced: Traced, latents: Mapping[str, Any], arrays: Arrays, values: Any) -> tuple[Any, Any]:
    """Log prior (without Jacobians) and response scores when the program itself is handed the outcome."""
    held = dict(latents) if values is not None else {**latents, traced.response: jnp.zeros(())}
    model = handlers.substitute(handlers.seed(traced.function, jax.random.key(0)), data=held)
    arguments = {**arrays, **dict(traced.fixed), traced.response_argument: values}
    try:
        trace = handlers.trace(model).get_trace(**arguments)
    except Exception as problem:  # a user's function may fail in any way
        raise SettingError(
            f"The program fails when it is given the outcome ({type(problem).__name__}). "
            "Try it on made-up data."
        ) from None
    total = jnp.zeros(())
    for name, site in trace.items():
        if site["type"] == "sample" and name != traced.response:
            score = jnp.sum(site["fn"].log_prob(site["value"]))
            total = total + (score if site["scale"] is None else site["scale"] * score)
    response = unwrap(trace[traced.response]["fn"])
    return total, response.log_prob(values) if values is not None else None


def _same(one: Array, two: Array) -> bool:
    return bool(np.allclose(one, two, rtol=1e-8, atol=1e-8, equal_nan=True))


def _is_latent(site: Mapping[str, Any]) -> bool:
    return site["type"] == "sample" and not site["is_observed"]
