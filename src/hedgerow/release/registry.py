"""A release as a record of OpenDP's registry of differential privacy deployments.

    >>> from hedgerow import verify_release
    >>> record = write_record(verify_release("release").certificate)
    >>> yaml.safe_load(record)["deployment"]["deployment_model"]["model_name"]
    'Central'

The registry (opendp/deployments-registry-data) takes one YAML file for each deployment. What a certificate
says is put where the registry asks for it, in the certificate's words; what it does not say is left out, and
listed in a comment at the top for whoever submits the record. Nothing is guessed.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from hedgerow.errors import show_controls
from hedgerow.privacy.claims import TUNED
from hedgerow.privacy.claims.neighbours import whose
from hedgerow.release.certificate import Certificate

# What the registry demands and no certificate knows.
_OPEN = (
    "url_slug", "deployment.basic.name", "deployment.basic.data_curators[0].data_curator_type",
    "deployment.administrative.registry_authors", "deployment.administrative.tier",
)  # fmt: skip
_FROM_ABOUT = {
    "curator": "deployment.basic.data_curators[0].data_curator_name",
    "purpose": "deployment.basic.intended_use",
    "region": "deployment.basic.data_product_region",
}


def write_record(certificate: Certificate) -> str:
    """The record as YAML, with a comment on what is still to be filled in."""
    given = certificate.owner_says
    open_fields = [*_OPEN, *(place for name, place in _FROM_ABOUT.items() if name not in given)]
    head = ["# For OpenDP's registry of deployments, opendp/deployments-registry-data. To be filled in:"]
    head += [f"# - {place}" for place in sorted(open_fields)]
    body = yaml.safe_dump(
        {"deployment": _without_gaps(_describe(certificate, given))},
        sort_keys=False, allow_unicode=True, width=100,
    )  # fmt: skip
    return "\n".join([*head, body])


def _describe(certificate: Certificate, given: Mapping[str, str]) -> dict[str, Any]:
    epsilon, delta = certificate.epsilon, certificate.delta
    copies = len(certificate.copies)
    what = "A synthetic copy" if copies == 1 else f"{copies} synthetic copies"
    software = ", ".join(f"{name} {number}" for name, number in certificate.software.items())
    decided = [f"Decided by {given['decided_by']}."] if "decided_by" in given else []
    contact = [f"Contact: {given['contact']}"] if "contact" in given else []
    kept = [f"Kept for: {given['retention']}"] if "retention" in given else []
    tuned = None if epsilon is None else f"Tuned on the data: {TUNED[certificate.bound]}."
    reason = [given["epsilon_reason"]] if "epsilon_reason" in given else []
    pure = certificate.bound == "strict" or (
        certificate.bound == "statistics" and certificate.standard != "Strict, in range"
    )
    mechanism = "One draw for each copy from a risk-weighted posterior"
    if certificate.bound in ("statistics", "gaussian"):
        kind = "Laplace" if certificate.bound == "statistics" else "Gaussian"
        mechanism = f"Sums of clipped outcomes with discrete {kind} noise, and predictions given these sums"
    composed = None
    if epsilon is not None and copies > 1:
        how = "ε and δ of the copies are added up" if epsilon.per_copy else "copies are priced together"
        composed = f"{copies} copies: {how}."
    return {
        "basic": {
            "data_curators": [{"data_curator_name": given["curator"]}] if "curator" in given else None,
            "description": f"{what} of a table of {certificate.records} records, in which "
            f"{_name_columns(certificate)} synthetic and all others are passed through unchanged. "
            f"hedgerow release {certificate.release}.",
            "intended_use": given.get("purpose"),
            "data_product_type": "Synthetic data",
            "data_product_region": given.get("region"),
            "publication_date": certificate.date,
        },
        "dp_variant": {
            # Only these are differential privacy by the book; a custom one has to say what it relates.
            "variant_name": "Pure DP" if pure and epsilon is not None else "Custom",
            "unprotected_quantities": _list(certificate.not_covered),
        },
        "privacy_loss": {
            "privacy_unit": f"The {_name_values(certificate)} in {_name_rows(certificate)}",
            "privacy_unit_details": _list(
                [
                    f"Compared with the table in which {certificate.neighbour}.",
                    *([] if certificate.unit is None else [certificate.unit.covered]),
                ]
            ),
            "number_of_privacy_units": None if _is_by_unit(certificate) else certificate.records,
            "privacy_parameters": {
                "epsilon": None if epsilon is None else epsilon.total,
                "delta": None if delta is None else delta.total,
            },
            "privacy_parameters_details": certificate.claim,
        },
        "deployment_model": {
            "model_name": "Central",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": tuned,
            "mechanisms": f"{mechanism} ({certificate.family}, "
            f"standard {certificate.standard}, bound {certificate.bound}). Randomness: "
            f"{dict(certificate.facts())['randomness']}. Made with {software}.",
            "composition": composed,
            "post_processing": _list(certificate.processing),
            "justification": _list([*decided, *reason]),
            "additional_information": _list([*contact, *kept]),
        },
        "administrative": {"status": "Draft"},
    }


def _name_columns(certificate: Certificate) -> str:
    named = ", ".join(f"'{name}'" for name in certificate.outcomes)
    return f"columns {named} are" if certificate.several else f"column {named} is"


def _name_values(certificate: Certificate) -> str:
    named = ", ".join(f"'{name}'" for name in certificate.outcomes)
    return f"values of {named} together" if certificate.several else f"value of {named}"


def _is_by_unit(certificate: Certificate) -> bool:
    return certificate.unit is not None and certificate.unit.together


def _name_rows(certificate: Certificate) -> str:
    unit = certificate.unit
    return "one row" if unit is None or not unit.together else f"all rows of {whose(unit.column)}"


def _list(texts: Any) -> str | None:
    """Several texts as the Markdown that the registry shows; None for none."""
    texts = list(texts)
    return "".join(f"- {show_controls(text)}\n" for text in texts) if len(texts) > 1 else (texts or [None])[0]


def _without_gaps(value: Any) -> Any:
    """The value without what is not known."""
    if not isinstance(value, dict):
        return value
    kept = {name: _without_gaps(item) for name, item in value.items()}
    return {name: item for name, item in kept.items() if item is not None and item != {}}
