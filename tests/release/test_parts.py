"""A table in parts is known by the same numbers as in one piece, and no more of it is held than asked."""

import hmac
import os
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hedgerow.errors import FileError
from hedgerow.numerics import leaves
from hedgerow.release.ledger import parts
from hedgerow.release.ledger.fingerprint import fingerprint
from hedgerow.release.ledger.overlap import share_rows
from hedgerow.release.ledger.parts import Parts, sort_rows
from hedgerow.release.ledger.sketch import sketch

KEY = b"k" * 32


@pytest.fixture(scope="module")
def frame() -> pa.Table:
    """Numbers with ties, text with a number at its end, gaps, categories, a key and a counter."""
    random, rows = np.random.default_rng(1), 400
    table = pd.DataFrame(
        {
            "pay": random.lognormal(3, 1, rows).round(1),
            "flag": random.integers(0, 2, rows),
            "place": random.choice(["north", "south", "east"], rows),
            "key": [f"firm {number}" for number in random.permutation(10**6)[:rows]],
            "line": np.arange(rows),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 400, rows), unit="D"),
        }
    )
    table.loc[::9, "place"] = None
    table["place"] = table["place"].astype("category")
    return pa.Table.from_pandas(table, preserve_index=False)


def cut(frame: pa.Table, scratch: Path) -> Parts:
    """What a spool would give: parts that are read one by one, and a folder for the rest."""
    whole = Parts.of(frame)
    return Parts(whole.names, whole.records, whole.part, scratch)


@pytest.mark.parametrize("columns", [["pay"], ["flag"], ["flag", "pay"], ["flag", "place", "day"], None])
def test_the_fingerprint_of_parts_is_that_of_the_table(frame, columns, tmp_path, monkeypatch):
    whole = fingerprint(frame, columns, key=KEY)
    monkeypatch.setattr(leaves, "LEAF", 64)
    monkeypatch.setattr(parts, "HELD", 100)  # so that every column is cut, and ties are cut again
    monkeypatch.setattr(parts, "_READ", 50)
    assert fingerprint(cut(frame, tmp_path), columns, key=KEY) == whole
    assert fingerprint(frame, columns, key=KEY) == whole
    assert not list(tmp_path.iterdir())


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=60),
    keys=st.permutations(range(3)),
    held=st.integers(3, 60),
)
def test_rows_come_in_order_however_little_is_held(rows, keys, held, tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "HELD", held)
    monkeypatch.setattr(parts, "_READ", 5)
    words = np.array(rows, dtype=np.uint64) << np.uint64(62)  # up to the largest word but some
    blocks = partial(np.array_split, words, -(-len(words) // 7))
    found = np.concatenate(list(sort_rows(lambda: iter(blocks()), len(words), keys, tmp_path)))
    assert (found == words[np.lexsort(words.T[list(keys)[::-1]])]).all()


def test_the_largest_word_may_recur(tmp_path, monkeypatch):
    """Such as a time of −1: there is no word after it to cut at."""
    monkeypatch.setattr(parts, "HELD", 16)
    words = np.array([[-1 - (row % 50 == 0), -row] for row in range(100)], dtype=np.int64).view(np.uint64)
    found = np.concatenate(list(sort_rows(lambda: iter([words]), len(words), [0, 1], tmp_path)))
    assert (found == words[np.lexsort(words.T[::-1])]).all()


def test_no_more_is_put_in_order_at_once_than_may_be_held(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "HELD", 1 << 10)
    words = np.random.default_rng(1).lognormal(size=(1 << 15, 1)).view(np.uint64)
    sizes = [len(block) for block in sort_rows(lambda: iter([words]), len(words), [0], tmp_path)]
    assert sum(sizes) == len(words)
    assert max(sizes) <= 1 << 10


def test_the_digest_is_that_of_all_rows_in_order(frame):
    words = np.sort(frame.column("pay").to_numpy().view(np.uint64))
    told = f"hedgerow fingerprint 1 {len(words)} 1 ".encode()
    assert fingerprint(frame, ["pay"], key=KEY) == hmac.digest(KEY, told + words.tobytes(), "sha256").hex()


def test_the_sketch_of_parts_is_that_of_the_table_and_recognised_by_any_other(frame, tmp_path, monkeypatch):
    whole = sketch(frame, "pay", key=KEY)
    monkeypatch.setattr(leaves, "LEAF", 150)
    in_parts = sketch(cut(frame, tmp_path), "pay", key=KEY)
    assert in_parts == sketch(frame, "pay", key=KEY)
    assert share_rows(whole, in_parts)
    monkeypatch.setattr(leaves, "LEAF", 200)
    assert share_rows(in_parts, sketch(frame.slice(100), "pay", key=KEY))


def test_counters_and_grids_in_parts_are_no_evidence(monkeypatch):
    """Line numbers are unique in every table, and consecutive days pair up with them alike."""
    monkeypatch.setattr(leaves, "LEAF", 64)
    random = np.random.default_rng(2)
    one, two = (
        pa.table(
            {"line": np.arange(500), "name": [f"row {i}" for i in range(500)], "x": random.normal(size=500)}
        )
        for _ in range(2)
    )
    assert not share_rows(sketch(one, "x", key=KEY), sketch(two, "x", key=KEY))
    assert share_rows(sketch(one, "x", key=KEY), sketch(one.slice(0, 400), "x", key=KEY))


def test_a_full_disk_is_said_without_a_path(frame, tmp_path, monkeypatch):
    def full(handle, *_):
        os.close(handle)
        raise OSError(28, "No space left on device", str(tmp_path / "words"))

    monkeypatch.setattr(parts.os, "fdopen", full)
    with pytest.raises(FileError, match="scratch folder cannot be written to") as told:
        fingerprint(cut(frame, tmp_path), ["pay"], key=KEY)
    assert str(tmp_path) not in str(told.value)


def test_rows_are_put_in_order_without_holding_them(tmp_path, monkeypatch):
    """16 MB of words in blocks of 512 kB, of which 256 kB may be put in order at once."""
    monkeypatch.setattr(parts, "HELD", 1 << 15)
    monkeypatch.setattr(parts, "_READ", 1 << 12)
    rows, width, step = 1 << 17, 16, 1 << 12

    def blocks():
        for first in range(0, rows, step):
            yield np.random.default_rng(first).integers(0, 2**63, (step, width), dtype=np.uint64)

    tracemalloc.start()
    count = sum(len(block) for block in sort_rows(blocks, rows, [0, 1], tmp_path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == rows
    assert peak < 4e6
