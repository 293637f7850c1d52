"""Plot of the power of a test by number of rows: how often it accepts calibrated and miscalibrated populations."""

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from truthcal.plots import drawing as draw
from truthcal.plots.by_size import SizeDisplay
from truthcal.results.power import Validity

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ValidityDisplay(SizeDisplay):
    """Plot of acceptance rates of a test by number of rows: 1 - power at a distance of C / sqrt(rows).

    Thick lines with markers are miscalibrated populations, thin lines of the same colour calibrated ones. A valid test
    keeps the gap between them as rows grow.

    Parameters
    ----------
    validity : Validity
        From `validity`.
    name : str, optional
        Name in the legend; test and distance by default.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import truthcal as tc
    >>> half = {"one prediction": [0.5]}
    >>> found = tc.validity("atb", constant=2, n_rows=[100, 400], populations=half, families=["shift"])
    >>> display = tc.plots.ValidityDisplay(found).plot(Figure().subplots())
    """

    _KIND = "validity"

    def __init__(self, validity: Validity, name: str | None = None) -> None:
        self.validity, self.name = validity, name
        self.sizes, self.values = validity.n_rows, validity.accept_miscalibrated

    def table(self) -> dict[str, NDArray[Any]]:
        """Return the columns of the result, with a row for each number of rows."""
        return self.validity.table()

    def _label(self, name: str | None) -> str:
        return name or f"{self.validity.test}, distance {self.validity.constant:.3g} / sqrt(rows)"

    def _draw_details(self, ax: "Axes", slot: int, style: draw.Style) -> None:
        super()._draw_details(ax, slot, style)
        rates = self.validity.accept_calibrated
        (thin,) = ax.plot(self.sizes, rates, color=style.color, linewidth=0.8, label="_calibrated")
        draw.tag(thin, self._KIND, slot, "calibrated")

    def _set_axes(self, ax: "Axes") -> None:
        ax.set(xlabel="rows", ylim=(-0.03, 1.03))
        draw.set_label(ax, "y", "acceptance rate (1 - power)")

    def _notes(self, ax: "Axes") -> draw.Entries:
        return [(draw.thin_line(draw.ink()), "thin: calibrated populations")]
