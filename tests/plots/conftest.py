"""Axes without a window, and rows to plot."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

mpl.use("agg")  # no windows, even on a machine with a screen


def rows(n, slope=1.0, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.random(n)
    odds = slope * np.log(truth / (1 - truth))
    return (rng.random(n) < truth).astype(int), 1 / (1 + np.exp(-odds))


@pytest.fixture
def figure():
    made = Figure(figsize=(6.4, 4.8), dpi=72)
    FigureCanvasAgg(made)
    return made


@pytest.fixture
def ax(figure):
    return figure.subplots()


@pytest.fixture
def artists():
    """The artists of an axes by their names."""
    return lambda ax: {artist.get_gid(): artist for artist in ax.get_children() if artist.get_gid()}


@pytest.fixture
def data():
    return rows
