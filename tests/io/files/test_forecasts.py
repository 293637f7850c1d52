"""One forecast per question at a horizon."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthcal.io.files.find_files import find_sources
from truthcal.io.files.forecasts import ForecastColumns, _latest, choose_forecasts, parse_horizon


def slow_choice(questions, times, early):
    """By the definition: for each question the last early row with the largest time."""
    chosen = []
    for question in sorted(set(questions)):
        rows = [i for i, q in enumerate(questions) if q == question and early[i]]
        chosen += [max(rows, key=lambda i: (times[i], i))] if rows else []
    return sorted(chosen)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5), st.booleans()), min_size=1, max_size=40))
def test_the_latest_early_row_of_each_question(rows):
    questions, times, early = zip(*rows, strict=True)
    choice = _latest(np.array(questions, np.uint64), np.array(times), np.array(early))
    expected = slow_choice(questions, times, early)
    assert np.flatnonzero(choice.chosen).tolist() == expected
    assert (choice.n_questions, choice.n_without) == (len(set(questions)), len(set(questions)) - len(expected))
    latest = [sum(q == questions[i] and t == times[i] and e for q, t, e in rows) for i in expected]
    assert choice.n_tied == sum(n > 1 for n in latest)


@pytest.fixture
def choose(tmp_path):
    """Choose rows of a CSV file with the columns q, made, close and p."""

    def run(*lines, horizon="7d", unit=None):
        path = tmp_path / "forecasts.csv"
        path.write_text("\n".join(["q,made,close,p", *lines]) + "\n")
        columns = ForecastColumns("q", "made", "close", horizon, unit)
        choice = choose_forecasts(find_sources(path), "p", columns)
        return np.flatnonzero(choice.chosen).tolist(), choice.note(columns)

    return run


def test_the_horizon_is_included(choose):
    rows, note = choose(
        "a,2026-01-01,2026-01-31,0.1",
        "a,2026-01-24,2026-01-31,0.2",  # exactly 7 days
        "a,2026-01-25,2026-01-31,0.3",
        "b,2026-01-30,2026-01-31,0.4",
        "c,2026-01-01T12:00:00,2026-01-31,0.5",
        "c,2026-01-01T12:00:00,2026-01-31,0.6",
    )
    assert rows == [1, 5]
    assert note == (
        "One forecast per 'q': the latest at least 7d before 'close' (2 of 6 rows). 1 of 3 questions have none and are "
        "left out. In 1 questions several are equally late; the last one in the file is used."
    )


def test_integer_times(choose):
    assert choose("a,1,10,0.1", "a,5,10,0.2", horizon="7")[0] == [0]
    assert choose("a,0,172800,0.1", "a,100000,172800,0.2", horizon="1d", unit="s")[0] == [0]


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (["a,2026-01-01,2026-02-01,0.5"], {"horizon": "month"}, "`horizon` must be a length of time such as 7d or 12h"),
        (["a,2026-01-01,2026-02-01,0.5"], {"horizon": "7 rows"}, "`horizon` must be a length of time"),
        (["a,1,9,0.5"], {"horizon": "7d"}, "`horizon` must be a number, as the times are integers; got '7d'"),
        (["a,2026-01-01,,0.5"], {}, r"column 'close' has a missing value \(no time\) at row 0"),
        (["a,2026-01-01,9,0.5"], {}, "'made' and 'close' must have one type, but only one of them holds integers"),
        ([",2026-01-01,2026-02-01,0.5"], {}, "`q` .*has a missing value"),
        ([], {}, "has no rows"),
    ],
)
def test_files_and_options_that_are_refused(choose, lines, options, message):
    with pytest.raises(ValueError, match=message):
        choose(*lines, **options)


def test_horizons():
    assert parse_horizon("2 days").size == 2 * 86_400_000_000
    assert parse_horizon("3", counter=True).size == 3
