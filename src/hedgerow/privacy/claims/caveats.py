"""What a claim does not cover, each sentence once, with where it comes from.

    >>> find_reason("C3").proof
    'The price'
    >>> find_id("Replacing an outcome by any other value is not covered.")
    'C5'

Every sentence has an id that stays its own, and leads to the section of docs/maths.md that it follows from, a
test (of the fact, or for what can only be said: that it is said), and the page on which a breach was
measured. So has the claim under each bound, by the bound's name. `docs/claims.md` is the table of all;
`hedgerow verify --why ID` prints one.

To add a sentence, add its row to `CAVEATS`; to add a bound, its rows to `ALWAYS` and `CLAIMS`.
A sentence that is changed is a new one with the next id, and the former stays in `FORMER`: certificates that
have it are about.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hedgerow.errors import SettingError


@dataclass(frozen=True)
class Reason:
    """Why something is said in a certificate."""

    id: str
    text: str  # "{}" stands for names
    proof: str  # a heading of docs/maths.md
    test: str  # file::name below tests/
    measured: str = ""  # page#anchor below docs/, where a breach or its absence was measured


def _read(*rows: tuple[str, ...]) -> dict[str, Reason]:
    return {row[0]: Reason(*row) for row in rows}


_AUDIT, _WEIGHTS = "honesty.md#audit", "weights.md#what-the-audit-says"
_KEPT = "release/test_keep.py::test_a_column_that_is_the_outcome_is_refused_dropped_or_kept"
_NOISY = "Strict by noisy statistics"
_STATED = "pages/test_claims_page.py::test_which_sentences_a_bound_always_has"

CAVEATS: Mapping[str, Reason] = _read(
    (
        "C1",
        "It is not differential privacy: over all parameters the loss is unbounded for this model. It speaks "
        "of the draws made for the data at hand, not of every possible table.",
        "The price", "laws/test_laws.py::test_more_draws_never_lower_the_price", "honesty.md#draws",
    ),
    (
        "C2",
        "It is not differential privacy: it speaks of the data at hand, not of every possible table.",
        "Rényi price",
        "mechanism/test_renyi_price.py"
        "::test_a_lone_record_has_an_infinite_price_under_a_vague_prior_and_a_finite_one_otherwise",
        "maths.md#rényi-price",
    ),
    (
        "C3",
        "Weights, their scale, the shares taken as public and the ranges are held fixed, although they were "
        "computed from all records, and so is the choice of the fit that met the target.",
        "The price", "evidence/test_audit.py::test_linear_weights_breach_the_oscillation_when_recomputed",
        _AUDIT,
    ),
    (
        "C4",
        "Who is in the table, the number and order of the records, the index and every other column are not "
        "protected.",
        "Standards", "release/test_folder.py::test_copies_have_the_columns_of_the_input_and_nothing_more",
    ),
    (
        "C5",
        "Replacing an outcome by any other value is not covered.",
        "The price", _STATED,
    ),
    (
        "C6",
        "That a run ended without a release, because the data, the model or the sampler refused, is not "
        "covered.",
        "The mechanism", _STATED,
    ),
    (
        "C7",
        "Arithmetic is in floating point; what the last digits of a copy may tell is not covered.",
        "Strict mode", _STATED,
    ),
    (
        "C8",
        "A record that decides much of its own fit, such as the only one of its category, can lose more than "
        "the draws show.",
        "The price",
        "mechanism/test_price.py::test_a_singleton_category_breaks_the_draw_based_bounds_and_the_user_is_told",
        _AUDIT,
    ),
    (
        "C9",
        "It rests on the box of parameters having been chosen without the confidential outcome.",
        "Strict mode", "privacy/test_strict.py::test_price_and_words", "honesty.md#strict-mode",
    ),
    (
        "C10",
        "That a run ended without a release, because the model refused an outcome or too few draws fell into "
        "the box, is not covered.",
        "The mechanism", _STATED,
    ),
    (
        "C11",
        "The draws are those of a Markov chain. Its health checks do not reveal a region it never visited, "
        "and nothing known bounds how far its draws are from the posterior the statement is about.",
        "Censored likelihood", "privacy/test_censored.py::test_draws_follow_the_censored_posterior",
        "honesty.md#models-without-a-closed-form",
    ),
    (
        "C12",
        "It rests on the model, its prior and with them the censoring having been chosen without the "
        "confidential outcome.",
        "Censored likelihood", "privacy/test_censored.py::test_no_outcome_moves_another_records_window",
    ),
    (
        "C13",
        "That a run ended without a release, because the model or the sampler refused, is not covered.",
        "The mechanism", _STATED,
    ),
    (
        "C14",
        "These weights move with every record. Recomputed without one record, the loss was seen above this "
        "bound.",
        "Audit", "evidence/test_audit.py::test_linear_weights_breach_the_oscillation_when_recomputed", _AUDIT,
    ),
    (
        "C15",
        "Weights are computed from the outcomes of all records. Recomputed without one record, the loss can "
        "exceed ε.",
        "Audit", "privacy/test_weights.py::test_weights_that_hang_on_other_records_say_so",
    ),
    (
        "C16",
        "Weights are computed from the fit that all records share. Recomputed without one record, the loss "
        "can exceed ε; in simulations it was seen to, most of all where residuals have heavier tails than "
        "the model.",
        "Audit", "privacy/test_weights.py::test_weights_that_hang_on_other_records_say_so", _WEIGHTS,
    ),
    (
        "C17",
        "The range-averaged ε compares with a table that still uses the exact outcome in part. It does not "
        "bound what can be learned about an outcome; with the outcome withheld the loss is larger and is not "
        "covered by ε.",
        "A range price never stands alone",
        "laws/test_laws.py::test_withholding_under_range_averaged_costs_nearly_what_unweighted_costs",
    ),
    (
        "C18",
        "The ε of a range standard compares with a public that knows the range. With the outcome withheld "
        "altogether the loss may be larger and is not covered by ε.",
        "A range price never stands alone",
        "laws/test_laws.py::test_adp_and_truncated_release_the_same_copies",
    ),
    (
        "C19",
        "It rests on what was declared of the outcome (support, levels, spike) not having been read from the "
        "confidential column.",
        "Ranges", "models/test_families.py::test_classes_are_never_read_from_the_data",
    ),
    (
        "C20",
        "Where a range holds a single value, that value is taken as public and is not protected.",
        "Ranges", "models/test_families.py::test_which_models_may_have_ranges_of_a_single_value",
    ),
    (
        "C21",
        "The ranges are computed from the outcome itself: whoever knew a record's range would know its "
        "outcome. ε does not cover that; classes with public edges support a plainer statement.",
        "Ranges", "test_synthesizer.py::test_public_outside_and_radius_are_named_in_the_guarantee",
    ),
    (
        "C22",
        "Records whose outcome lies outside its range are taken as public: they are not protected at all, "
        "and which records these are is not protected either.",
        "Ranges", "privacy/test_ranges.py::test_outside_is_an_error_by_default_and_public_by_choice",
    ),
    (
        "C23",
        "The owner keeps {} in the copies on purpose, whatever they say about '{}': what can be computed "
        "from them is published.",
        "Standards", _KEPT,
    ),
    (
        "C24",
        "The confidence holds if the run was made once, not repeated until it met the target.",
        "The price", "mechanism/test_calibrate.py::test_the_stated_delta_does_not_depend_on_the_data",
    ),
    (
        "C25",
        "The correction is post-processing if it was decided on before looking at the confidential data.",
        "Undoing the bias", "mechanism/test_debias.py::test_another_confidential_table_changes_not_one_bit",
    ),
    (
        "C26",
        "The draws come from a Markov chain, so that δ and the confidence are approximate.",
        "The price",
        "models/test_program.py::test_the_statement_rests_on_the_gates_minimum_not_on_the_measured_ess",
    ),
    (
        "C27",
        "The randomness comes from a seed set by hand. With that seed the copies are a function of the data: "
        "it must stay secret, and a release for publication should be made without one.",
        "The price", "laws/test_laws.py::test_the_same_seed_gives_the_same_bytes",
    ),
    (
        "C28",
        "The rows are in the order of the input. If that order says anything about the outcome, it is "
        "public.",
        "Standards", "release/test_folder.py::test_rows_sorted_by_the_outcome_are_refused",
    ),
    (
        "C29",
        "Columns that were used and not released ({}) are not protected either.",
        "Standards", "release/test_folder.py::test_columns_can_be_left_out_of_the_copies",
    ),
    (
        "C30",
        "It is a statement about releases: that a run ended without one, because the file could not be read, "
        "held no numbers in the protected column or the ledger refused, and how long a run took are not "
        "covered.",
        "Strict mode",
        "release/test_strict_neighbours.py::test_one_cell_changes_neither_exit_code_nor_messages_nor_files",
    ),
    (
        "C31",
        "No look at the confidential data was counted before this release; choices made by looks that nobody "
        "counted are not covered.",
        "The mechanism",
        "release/test_charges.py::test_a_certificate_whose_looks_were_changed_contradicts_itself",
    ),
    (
        "C32",
        "The confidential data was looked at {} before this release, as far as that was counted: choices "
        "made by what was seen are not covered.",
        "The mechanism", "release/test_charges.py::test_looks_are_counted_shown_and_certified",
    ),
    (
        "C33",
        "It rests on the limits, and on the sets that a range makes, having been chosen without the "
        "confidential outcome.",
        _NOISY, "test_fitted.py::test_copies_follow_from_the_released_statistics_alone",
        "strict.md#how-to-choose-limits",
    ),
    (
        "C34",
        "Outcomes of different sets are not kept apart at this ε: which set an outcome lies in may be "
        "learned, as far as the price of replacing it by any other value allows, which is larger.",
        _NOISY, "test_fitted.py::test_an_attack_bounds_epsilon_from_below", "strict.md#relations",
    ),
    (
        "C35",
        "The scale of the weights is computed from all records, to meet the target. Computed anew without "
        "one record, the loss can exceed ε; in simulations it was seen to.",
        "Audit", "privacy/test_weights.py::test_weights_that_hang_on_other_records_say_so", _AUDIT,
    ),
    (
        "C36",
        "The draws may come from a Markov chain, so that δ and the confidence are approximate, and copies "
        "are composed as if their draws were independent.",
        "The price",
        "models/test_program.py::test_the_statement_rests_on_the_gates_minimum_not_on_the_measured_ess",
    ),
    (
        "C37",
        "The probability that a record lies in all of its ranges is estimated by simulation where columns "
        "hang together. ε allows for the error of that estimate; that the error is larger anywhere has a "
        "probability of about 1 % over the points of the simulation, which the confidence does not count.",
        "A box of ranges",
        "models/test_joint.py::test_simulation_brackets_the_integral_and_says_that_it_is_one",
    ),
    (
        "C38",
        "Where copies have gaps of their own, a missing cell is a value as others are, and one that is "
        "withheld is neither: an amount told from a gap is one value told from another, which ε does not "
        "cover.",
        "Kinds of cells by noisy statistics",
        "mechanism/noisy/chain/test_kinds.py::test_a_gap_that_is_synthesized_is_no_cell_that_is_withheld",
    ),
)  # fmt: skip

FORMER = ("C10", "C26")  # said by certificates of former versions of hedgerow alone

# What a claim never covers, by the name of its bound.
_LOCAL = ("C3", "C4", "C5", "C6", "C7")
ALWAYS: Mapping[str, tuple[str, ...]] = {
    "lipschitz": ("C1", *_LOCAL, "C8"),
    "oscillation": ("C1", *_LOCAL, "C8"),
    "exact": ("C1", *_LOCAL),
    "renyi": ("C2", *_LOCAL),
    "strict": ("C9", "C4", "C30"),
    "censored": ("C11", "C12", "C4", "C13", "C7"),
    "statistics": ("C33", "C4", "C30"),
    "gaussian": ("C33", "C4", "C30"),
}

# The claim itself, by the name of its bound.
CLAIMS: Mapping[str, Reason] = _read(
    (
        "lipschitz", "The claim under the bound lipschitz, the paper's ε.",
        "The price", "mechanism/test_price.py::test_the_statement_covers_fresh_draws", _AUDIT,
    ),
    (
        "oscillation", "The claim under the bound oscillation.",
        "The price",
        "mechanism/test_price.py::test_the_oscillation_is_certified_about_centres_fixed_beforehand", _AUDIT,
    ),
    (
        "exact", "The claim under the bound exact.",
        "Exact loss", "evidence/test_audit.py::test_fixed_losses_are_the_exact_withheld_price", _AUDIT,
    ),
    (
        "renyi", "The claim under the bound renyi.",
        "Rényi price", "mechanism/test_renyi_price.py::test_the_statement_holds_in_both_directions",
        "maths.md#rényi-price",
    ),
    (
        "strict", "The claim under the bound strict.",
        "Strict mode", "privacy/test_strict.py::test_the_posteriors_differ_by_at_most_epsilon_on_a_grid",
        "honesty.md#attack",
    ),
    (
        "censored", "The claim under the bound censored.",
        "Censored likelihood",
        "privacy/test_censored.py::test_the_posteriors_differ_by_at_most_epsilon_on_a_grid",
        "honesty.md#models-without-a-closed-form",
    ),
    (
        "statistics", "The claim under the bound statistics.",
        _NOISY, "test_fitted.py::test_an_audit_finds_no_loss_above_epsilon_and_nearly_that",
        "strict.md#relations",
    ),
    (
        "gaussian", "The claim under the bound gaussian: statistics with Gaussian noise.",
        _NOISY,
        "release/test_strict_statistics.py::test_each_relation_pays_from_its_account_and_for_withheld",
        "strict.md#relations",
    ),
)  # fmt: skip


def write_caveat(id: str, *names: str) -> str:
    """The sentence of an id, with names where it has room for them."""
    return CAVEATS[id].text.format(*names)


def write_looks(looks: int) -> str:
    """What is not covered because of looks at the data beforehand, by their number."""
    return write_caveat("C32", "once" if looks == 1 else f"{looks} times") if looks else write_caveat("C31")


def find_id(sentence: str) -> str | None:
    """The id of a sentence as a certificate has it; None for one that is not in the table."""
    return next((id for id, pattern in _PATTERNS.items() if pattern.fullmatch(sentence)), None)


def find_reason(id: str) -> Reason:
    """What an id stands for; raises `SettingError` that names those there are."""
    known = {**CLAIMS, **CAVEATS}
    for name in (id.upper(), id.lower()):
        if name in known:
            return known[name]
    names = f"{', '.join(CLAIMS)}, C1 to C{len(CAVEATS)}"
    raise SettingError(f"{id!r} is no sentence of a certificate. There are {names}: see docs/claims.md.")


_PATTERNS = {
    id: re.compile(re.escape(each.text).replace(re.escape("{}"), ".*"), re.DOTALL)
    for id, each in CAVEATS.items()
}
