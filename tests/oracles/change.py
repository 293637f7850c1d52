"""Slow, obvious versions of the test for change, from its definition. They know nothing of truthcal.

A data set is a list of rows (window, group, p, y, w); windows and groups are numbered from 0.
"""

import itertools
import math

COSINES = 6


def rates(rows):
    """The frequency of the event in each group of similar predictions."""
    groups = sorted({row[1] for row in rows})
    total = {g: sum(w for _, group, _, _, w in rows if group == g) for g in groups}
    return {g: sum(w * y for _, group, _, y, w in rows if group == g) / total[g] for g in groups}


def variances(rows):
    """Unbiased variance of an outcome in each group, from the frequency of the event; 0 for a single row."""
    result = {}
    for g, rate in rates(rows).items():
        weights = [w for _, group, _, _, w in rows if group == g]
        left = 1 - sum(w * w for w in weights) / sum(weights) ** 2
        result[g] = rate * (1 - rate) / left if left > 1e-12 else 0.0
    return result


def places(rows):
    """The middle of each group on the information axis."""
    v = variances(rows)
    information = [sum(w * w * v[g] for _, group, _, _, w in rows if group == g) for g in sorted(v)]
    return [(sum(information[:g]) + information[g] / 2) / sum(information) for g in range(len(information))]


def variance_of_sum(rows, is_inside, j):
    """Variance of the sum in `squares` if outcomes of a group are independent with one variance.

    A row inside has the coefficient w (1 - share), a row outside -w share, where share is that of the weight inside.
    """
    place, v = places(rows), variances(rows)
    total = 0.0
    for g in sorted(v):
        group = [row for row in rows if row[1] == g]
        share = sum(row[4] for row in group if is_inside(row)) / sum(row[4] for row in group)
        squares = sum((row[4] * ((1 if is_inside(row) else 0) - share)) ** 2 for row in group)
        total += v[g] * squares * math.cos(math.pi * j * place[g]) ** 2
    return total


def squares(rows, weight, is_inside):
    """Terms of the statistic, one for each cosine: (factor, coefficient of each row).

    The term is the factor times the square of the sum over rows inside of w times the error, times the cosine.
    """
    place, terms = places(rows), []
    for j in range(COSINES):
        variance = variance_of_sum(rows, is_inside, j)
        if variance > 1e-12:
            wave = [w * math.cos(math.pi * j * place[g]) for _, g, _, _, w in rows]
            inside = [x if is_inside(row) else 0.0 for x, row in zip(wave, rows, strict=True)]
            terms.append((weight / (1 + j) / variance, inside))
    return terms


def date_terms(rows):
    """The terms of each date of change, with the weight 1."""
    windows = sorted({row[0] for row in rows})
    return [squares(rows, 1.0, lambda row, t=t: row[0] <= t) for t in windows[:-1]]


def all_terms(rows):
    """All terms of the statistic: those of dates of change, and those of single windows."""
    v, windows = variances(rows), sorted({row[0] for row in rows})
    noise = [sum(row[4] ** 2 * v[row[1]] for row in rows if row[0] == t) for t in windows]
    share = [x / sum(noise) for x in noise]
    dates = [share[k] + share[k + 1] for k in range(len(windows) - 1)]
    terms = []
    for k, date in enumerate(date_terms(rows)):
        terms += [(dates[k] / sum(dates) * factor, inside) for factor, inside in date]
    for k, t in enumerate(windows):
        terms += squares(rows, 2 * share[k], lambda row, t=t: row[0] == t)
    return terms


def value(terms, rows, outcomes=None):
    """The sum of terms; `outcomes` replace those of the rows. Errors are measured from the mean of their group."""
    y = [row[3] for row in rows] if outcomes is None else outcomes
    errors = [row[2] - yi for row, yi in zip(rows, y, strict=True)]
    mean = {}
    for g in {row[1] for row in rows}:
        inside = [(row[4], error) for row, error in zip(rows, errors, strict=True) if row[1] == g]
        mean[g] = sum(w * error for w, error in inside) / sum(w for w, _ in inside)
    rest = [error - mean[row[1]] for row, error in zip(rows, errors, strict=True)]
    return sum(factor * sum(a * e for a, e in zip(inside, rest, strict=True)) ** 2 for factor, inside in terms)


def placements(rows):
    """All outcomes with the same number of events in each group."""
    groups = sorted({row[1] for row in rows})
    members = [[i for i, row in enumerate(rows) if row[1] == g] for g in groups]
    events = [sum(rows[i][3] for i in inside) for inside in members]
    for chosen in itertools.product(*(itertools.combinations(m, k) for m, k in zip(members, events, strict=True))):
        happened = {i for group in chosen for i in group}
        yield [1 if i in happened else 0 for i in range(len(rows))]
