"""False alarms and delays of `Monitor` and of probcal's CalibrationMonitor on the same streams: `make bench-peers`.

Each week has 100 rows, p ~ Beta(2, 3), and each monitor looks once a week. The page is docs/benchmarks/monitor.md. A
stream ends at its alarm. The run took 50 minutes on one core, most of it in probcal.
"""

import argparse
import importlib.metadata
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import truthcal as tc

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "monitor.md"
ROWS, ALPHA = 100, 0.05
NEVER = 10**6


@dataclass(frozen=True)
class Scenario:
    """A kind of stream: the true probability of an event by prediction and week, and the week of its change."""

    name: str
    truth: Callable[[np.ndarray, int], np.ndarray]
    weeks: int = 200
    change: int = 0


def _slope(p: np.ndarray, slope: float) -> np.ndarray:
    return 1.0 / (1.0 + ((1.0 - p) / p) ** slope)


CALIBRATED = Scenario("calibrated", lambda p, _: p)
SCENARIOS = (
    CALIBRATED,
    Scenario("shift of 0.03", lambda p, _: p - 0.03),
    Scenario("log-odds times 0.8", lambda p, _: _slope(p, 0.8)),
    Scenario("sine: 0.08 sin(4 pi p)", lambda p, _: p + 0.08 * np.sin(4.0 * np.pi * p), 60),
    Scenario("shift of 0.03 from week 100 on", lambda p, week: p - 0.03 * (week >= 100), 250, 100),
)


def _truthcal() -> Callable[[np.ndarray, np.ndarray], bool]:
    monitor, limit = tc.Monitor(ALPHA), -math.log(ALPHA)
    return lambda y, p: monitor.update(y, p)._blocks.log_e_value() >= limit  # status() also writes sentences


def _probcal(**parameters: object) -> Callable[[np.ndarray, np.ndarray], bool]:
    from probcal.monitor import CalibrationMonitor

    monitor = CalibrationMonitor(alpha=ALPHA, **parameters)
    return lambda y, p: monitor.update(y, p).alarm


MONITORS = {
    "truthcal": _truthcal,
    "probcal": _probcal,
    "probcal, plug_in_window=26": lambda: _probcal(plug_in_window=26),
}


def alarm_weeks(scenario: Scenario, name: str, streams: range) -> list[int]:
    """Return the week of the alarm of each stream, from 1 on. Streams are the same for all monitors."""
    weeks = []
    for stream in streams:
        rng, look = np.random.default_rng([stream, ROWS]), MONITORS[name]()
        alarm = NEVER
        for week in range(scenario.weeks):
            p, u = rng.beta(2.0, 3.0, ROWS), rng.random(ROWS)
            if look((u < scenario.truth(p, week)).astype(np.int64), p):
                alarm = week + 1
                break
        weeks.append(alarm)
    return weeks


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--streams", type=int, default=1000, help="streams of truthcal")
    arguments.add_argument("--peer-streams", type=int, default=200, help="streams of probcal, the first of these")
    arguments.add_argument("--cache", type=Path, help="JSON of finished runs, to continue an interrupted one")
    options = arguments.parse_args()
    done: dict[str, list[int]] = {}
    if options.cache and options.cache.exists():
        done = json.loads(options.cache.read_text())
    for scenario in SCENARIOS:
        for name in MONITORS:
            streams = options.streams if name == "truthcal" else options.peer_streams
            key = f"{scenario.name} | {name}"
            known = done.setdefault(key, [])
            if len(known) < streams:
                start = time.perf_counter()
                known += alarm_weeks(scenario, name, range(len(known), streams))
                print(f"{key}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
                if options.cache:
                    options.cache.write_text(json.dumps(done))
    PAGE.write_text(page(done), encoding="utf-8")
    print(PAGE)


# --- the page ---------------------------------------------------------------------------------------------------------


def page(done: dict[str, list[int]]) -> str:
    """Return the page with the numbers of all runs."""
    versions = f"truthcal {tc.__version__}, probcal {importlib.metadata.version('probcal')}"
    false = [[name, _share(done[f"{CALIBRATED.name} | {name}"], CALIBRATED)] for name in MONITORS]
    rows = []
    for scenario in SCENARIOS[1:]:
        weeks = {name: done[f"{scenario.name} | {name}"] for name in MONITORS}
        rows.append([scenario.name, *(_delay(list_, scenario) for list_ in weeks.values()), _paired(weeks, scenario)])
    return f"""# Monitoring

`make bench-peers` writes this page (benchmarks/monitor.py; {versions}). Each week has {ROWS} rows with p
~ Beta(2, 3), and the monitors look once a week, at alpha = {ALPHA:g}. Slow monitors get the first streams only; the
tables have their number.

## False alarms

Calibrated streams that raise an alarm in {CALIBRATED.weeks} weeks. Both packages guarantee at most a share of
{ALPHA:g}.

{_table(["monitor", "false alarms"], false)}

## Weeks until the alarm

Median of the weeks from the change (or from the first week) to the alarm; in parentheses, the share of streams with an
alarm in all weeks of the simulation, and the number of streams. "No alarm" counts as the longest delay; alarms before
the change are left out. The last column says, for streams that both monitors saw, how often truthcal was earlier than
probcal with its defaults, at the same time, and later.

{_table(["stream", *MONITORS, "earlier / same / later"], rows)}

{READING}
"""


READING = """probcal estimates an offset and a slope from past batches and bets on them. It keeps all rows, refits them
each week, and has no start times. For a shift from the first week on it is as fast as truthcal or a little faster: it
need not allow for changes and for errors of other shapes. After 100 calibrated weeks its defaults are slow, because the
estimates contain all of the past; with `plug_in_window=26` it is about as fast as truthcal, but the user must know
the right window. truthcal has no such parameter, keeps sums in place of rows, and its monitors can be merged."""


def _share(weeks: list[int], scenario: Scenario) -> str:
    false = sum(week <= scenario.weeks for week in weeks)
    return f"{false} of {len(weeks):,} ({100.0 * false / len(weeks):.2g}%)" if weeks else "not run"


def _after(weeks: list[int], scenario: Scenario) -> list[float]:
    """Delays of the streams without an alarm before the change."""
    return [week - scenario.change if week < NEVER else math.inf for week in weeks if week > scenario.change]


def _delay(weeks: list[int], scenario: Scenario) -> str:
    delays = _after(weeks, scenario)
    median = float(np.median(delays))
    found = sum(math.isfinite(delay) for delay in delays) / len(delays)
    limit = scenario.weeks - scenario.change
    delay = f"{median:.0f}" if math.isfinite(median) else f"over {limit}"
    return f"{delay} ({found:.0%} of {len(delays)})"


def _paired(weeks: dict[str, list[int]], scenario: Scenario) -> str:
    pairs = [
        (ours, theirs)
        for ours, theirs in zip(weeks["truthcal"], weeks["probcal"], strict=False)
        if min(ours, theirs) > scenario.change
    ]
    signs = [(ours > theirs) - (ours < theirs) for ours, theirs in pairs]
    return " / ".join(f"{signs.count(sign) / len(signs):.0%}" for sign in (-1, 0, 1))


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
