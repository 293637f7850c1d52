"""What truthcal does, on a generated data set: `make demo`."""

import numpy as np

import truthcal as tc

rng = np.random.default_rng(7)
n = 20_000
truth = rng.beta(2, 3, n)  # each event's true chance, which a real data set would not tell
outcome = rng.random(n) < truth
log_odds = np.log(truth / (1 - truth))

forecasters = {
    "honest": truth,
    "overconfident": 1 / (1 + np.exp(-1.5 * log_odds)),
    "too high by 0.03": np.clip(truth + 0.03, 0, 1),
    "always the average": np.full(n, truth.mean()),
}

print(f"Four forecasters of the same {n:,} events. Can their probabilities be trusted?\n")
print(f"  {'forecaster':<18} {'ATB':>10} {'noise floor':>13} {'rms':>11} {'bias':>9} {'Brier':>8}")
for name, predictions in forecasters.items():
    s = tc.atb_summary(outcome, predictions)
    print(f"  {name:<18} {s.value:>10.2e} {s.noise_floor:>13.2e} {s.rms:>11.3f} {s.bias:>+9.3f} {s.brier:>8.3f}")

print("\nEach in words:\n")
for name, predictions in forecasters.items():
    print(f"  {name}: {tc.assess(outcome, predictions).verdict}".replace("\n", "\n    "))

print("\nThe overconfident one in full:\n")
print(tc.assess(outcome, forecasters["overconfident"]))

print("\nHonest against always the average:\n")
print(tc.compare(outcome, forecasters["honest"], forecasters["always the average"]))

print("\nDoes lying pay?\n")
print(tc.audit([0.25, 0.75]))

print("\nWhat the other measures say of the overconfident one, from the same sort of the rows:\n")
print(tc.all_measures(outcome, forecasters["overconfident"]))

print("\nATB from a sketch of fixed size, built in ten parts and merged:\n")
parts = [tc.Sketch().update(outcome[k::10], forecasters["overconfident"][k::10]) for k in range(10)]
sketch = sum(parts, tc.Sketch())
print(f"  {sketch}; ATB {sketch.atb()}")
