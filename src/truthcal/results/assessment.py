"""What `assess` returns: the verdict in words, and the evidence for it."""

import dataclasses
import html
import importlib
import math
from dataclasses import dataclass, field
from typing import Any

from truthcal.results.measures import ScoreDecomposition
from truthcal.results.tests import CalibrationTest, ConfidenceInterval, percent
from truthcal.results.text import literal, markdown_table

# Errors that stay hidden below this size leave little to be said.
_LARGE = 0.1


@dataclass(frozen=True, slots=True)
class BiasedStretch:
    """Where predictions are most off in one direction.

    Attributes
    ----------
    low, high : float
        The smallest and largest prediction of the stretch.
    bias : float
        Mean prediction minus mean outcome there.
    share : float
        Its share of the weight.
    """

    low: float
    high: float
    bias: float
    share: float

    def __str__(self) -> str:
        if self.bias == 0.0:
            return "nowhere"
        where = f"between {self.low:.2g} and {self.high:.2g}" if self.low < self.high else f"at {self.low:.3g}"
        too = "high" if self.bias > 0.0 else "low"
        return f"{where}, where predictions are too {too} by {abs(self.bias):.2g} on average"


@dataclass(frozen=True, slots=True)
class Assessment:
    """Can these probabilities be trusted? Returned by `assess`. Print it.

    Attributes
    ----------
    kind : str
        "calibrated", "too few rows", "too high", "too low", "overconfident", "underconfident", "miscalibrated" (none of
        these four clearly, or an outcome had a predicted chance of exactly 0) or "too good".
    verdict : str
        In one to three lines.
    atb, noise_floor, excess, rms, brier : float
        As in `AtbSummary`.
    rms_interval, bias_interval : ConfidenceInterval
        Of the error on the scale of a probability, and of the bias; their `estimate` is the value.
    test : CalibrationTest
        The calibration test; ``test.greater`` and ``test.less`` are the p-values of both tails.
    detectable : float
        The mean error that these rows would have shown with probability 0.8; nan if there is none.
    largest_bias : BiasedStretch
        Where predictions are most off in one direction.
    decomposition : ScoreDecomposition
        The Brier score as miscalibration, discrimination and uncertainty.
    mean_proba, mean_true : float
        Mean prediction and mean outcome.
    n : int
        Rows that count.
    n_effective : float
        Rows of equal weight worth as much.
    warnings : tuple of str
        What is legal but suspicious.
    """

    kind: str
    verdict: str
    atb: float
    noise_floor: float
    excess: float
    rms: float
    brier: float
    rms_interval: ConfidenceInterval
    bias_interval: ConfidenceInterval
    test: CalibrationTest
    detectable: float
    largest_bias: BiasedStretch
    decomposition: ScoreDecomposition
    mean_proba: float
    mean_true: float
    n: int
    n_effective: float
    warnings: tuple[str, ...]
    _summary: Any = field(default=None, repr=False, compare=False)  # the sorted rows or the sketch, to draw curves of

    def _rows(self) -> list[tuple[str, str, str]]:
        """Name, number and explanation of each piece of evidence."""
        d = self.decomposition
        even = math.isclose(self.n, self.n_effective, rel_tol=1e-9)
        means = f"mean prediction {self.mean_proba:.4g}, outcome {self.mean_true:.4g}"
        could = "smallest mean error that would have shown, 4 times in 5"
        if math.isnan(self.detectable):
            could = "too little is left to chance to say what would have shown"
        parts = f"miscalibration {d.miscalibration:.3g} - discrimination {d.discrimination:.3g}"
        return [
            ("error (rms)", _number(self.rms), _between(self.rms_interval)),
            ("bias", f"{_tidy(self.bias_interval.estimate):+.4g}", f"{_between(self.bias_interval)}; {means}"),
            ("ATB", _number(self.atb), f"chance alone gives {self.noise_floor:.3g}; excess {_number(self.excess)}"),
            ("miscalibrated?", self.test.in_words(self.test.greater), f"by {self.test.measure} ({self.test.method})"),
            ("too good?", self.test.in_words(self.test.less), "small if predictions were fitted on these outcomes"),
            ("largest bias", f"{self.largest_bias.bias:+.4g}", f"{self.largest_bias}"),
            (
                "detectable",
                _number(self.detectable),
                "too little is left to chance" if math.isnan(self.detectable) else could,
            ),
            ("Brier score", f"{self.brier:.4g}", f"{parts} + uncertainty {d.uncertainty:.3g}"),
            ("rows", f"{self.n:,}", "" if even else f"worth {self.n_effective:,.1f} of equal weight"),
        ]

    def __str__(self) -> str:
        lines = [f"  {name:<15} {number:<11} {words}".rstrip() for name, number, words in self._rows()]
        return "\n".join([self.verdict, "", *lines, *(f"! {warning}" for warning in self.warnings)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join(
            f'<tr><th scope="row" style="text-align:left">{html.escape(name)}</th><td>{html.escape(number)}</td>'
            f'<td style="text-align:left">{html.escape(words)}</td></tr>'
            for name, number, words in self._rows()
        )
        verdict = html.escape(self.verdict).replace("\n", "<br>")
        warnings = "".join(f"<p>&#9888; {html.escape(warning)}</p>" for warning in self.warnings)
        return f"<p><strong>{verdict}</strong></p><table>{cells}</table>{warnings}"

    def to_markdown(self) -> str:
        """Verdict and evidence in Markdown, for a pull request or a job summary."""
        first, *more = [literal(line) for line in self.verdict.splitlines()]
        words = "\n".join([f"**{first}**", *more])
        warnings = [f"> ⚠ {literal(warning)}" for warning in self.warnings]
        return "\n\n".join([words, markdown_table(("", "value", "meaning"), self._rows(), right=[1]), *warnings])

    def to_html(self, *, title: str | None = None) -> str:
        """The whole report as one HTML file that needs nothing else: see `truthcal.report`, which has more to choose.

        Needs matplotlib and jinja2: ``pip install 'truthcal[report]'``.
        """
        # The report stands above everything else, this file below: so it is looked up when it is asked for.
        made = importlib.import_module("truthcal.reports").report(self, title=title)
        return str(made.html)

    def to_dict(self) -> dict[str, Any]:
        """All of it, in nested dicts of plain values, ready for JSON (nan where a number is not known)."""
        plain = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("rms_interval", "bias_interval", "test", "largest_bias", "decomposition", "_summary")
        }
        return {
            **plain,
            "warnings": list(self.warnings),
            "rms_interval": self.rms_interval.to_dict(),
            "bias_interval": self.bias_interval.to_dict(),
            "test": self.test.to_dict(),
            "largest_bias": dataclasses.asdict(self.largest_bias),
            "decomposition": self.decomposition.to_dict(),
        }


def sees_far(detectable: float, mean_proba: float) -> bool:
    """Whether errors that matter would have shown: of 0.1, or of half of the rarer outcome's mean chance."""
    return detectable <= min(_LARGE, min(mean_proba, 1.0 - mean_proba) / 2.0)


def _number(x: float) -> str:
    return "unknown" if math.isnan(x) else f"{_tidy(x):.4g}"


def _tidy(x: float) -> float:
    """Without what rounding leaves of 0."""
    return 0.0 if abs(x) < 1e-15 else x


def _between(interval: ConfidenceInterval) -> str:
    if math.isnan(interval.low):
        return "no interval"
    return f"{percent(interval.confidence_level)} between {interval.low:.4g} and {interval.high:.4g}"
