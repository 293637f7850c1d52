"""The note on dependent rows that every result with p-values of rows carries."""

from typing import ClassVar

# Independent rows are beyond this z in at most 1% of files, sorted ones and wrong predictions included (simulated);
# the worst case found is 2.8%, for an error of 8 periods in 200 sorted rows.
_DEPENDENT = 4.0
_HOW = "groups=, or --group on the command line"
# With fewer effective groups than this, tests and intervals of grouped rows are less accurate.
_FEW_GROUPS = 40.0


class RowOrderNote:
    """Base of results that assume independent rows: `neighbour_z` shows whether errors of neighbours are correlated."""

    __slots__ = ()
    neighbour_z: float | None
    _neighbours: ClassVar[str] = "in the order of the rows"

    @property
    def dependence(self) -> str:
        """A warning if rows look dependent, with the number and what to do; otherwise empty."""
        if self.neighbour_z is None or abs(self.neighbour_z) <= _DEPENDENT:
            return ""
        z = f"z = {self.neighbour_z:.1f} {self._neighbours}"
        if self.neighbour_z < 0.0:
            return (
                f"errors of neighbouring rows have opposite signs ({z}): outcomes seem to exclude each other, like "
                "those of both teams of a match. Tests and intervals assume independent rows: name the column that "
                f"says which rows belong together ({_HOW}), or keep one row of each match."
            )
        return (
            f"errors of neighbouring rows are correlated ({z}): rows seem to belong together (one patient, match or "
            "day), or the error differs along the file. Tests and intervals assume independent rows: name the column "
            f"that says which rows belong together ({_HOW}), or keep one row of each patient, match or day."
        )

    def _row_order_warnings(self) -> list[str]:
        """Return the warning as a list, for a page; empty if there is none."""
        return [self.dependence] if self.dependence else []


def few_groups(n_effective: float | None) -> str:
    """A warning if rows belong to few groups; otherwise empty, also without groups."""
    if n_effective is None or n_effective >= _FEW_GROUPS:
        return ""
    return (
        f"there are few groups: their effective number is {n_effective:,.1f}, and tests and intervals are accurate "
        f"from about {_FEW_GROUPS:.0f} on."
    )
