"""The commands: their purpose, examples and options."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its purpose, examples, and the names of its options."""

    name: str
    help: str
    examples: tuple[tuple[str, str], ...]
    options: str

    @property
    def epilog(self) -> str:
        """The examples as help shows them."""
        return "examples:\n" + "\n".join(f"  # {purpose}\n  {line}" for purpose, line in self.examples)


_CSV = "predictions.csv"
# Of commands that read rows with outcomes.
_INPUT = " format rule answers percent where missing fractional question close horizon"
COMMANDS = (
    Command(
        "assess",
        "can these probabilities be trusted? Prints a verdict in words, followed by the evidence",
        (
            ("the columns are guessed if the choice is unambiguous", f"truthcal assess {_CSV}"),
            (
                "name the columns and also assess segments",
                f"truthcal assess {_CSV} --proba score --label hit --by region",
            ),
            ("assess two models and write a report", f"truthcal assess {_CSV} --proba a --proba b --report out.html"),
            ("many classes: one column for each of them", f"truthcal assess {_CSV} --label kind --proba-prefix p_"),
            ("rows of the same match belong together", f"truthcal assess {_CSV} --group match_id"),
            ("all regions, the largest error first", f"truthcal assess {_CSV} --by region --sort error --all"),
            ("draw the reliability diagram", f"truthcal assess {_CSV} --plot"),
            ("has calibration changed over time?", f"truthcal assess {_CSV} --time date --window week"),
            ("assess some of the rows", f"truthcal assess {_CSV} --where \"season >= 2018 and region = 'north'\""),
            ("assess many files of any size", "truthcal assess 'day-*.parquet' --json"),
            ("read the output of another program", "zcat big.csv.gz | truthcal assess -"),
            ("assess a language model: samples of lm-eval", "truthcal assess samples_arc_easy_2026-01-31.jsonl"),
            (
                "forecasts: leave out ties and void questions",
                f"truthcal assess {_CSV} --fractional drop --missing drop",
            ),
        ),
        "files class probas proba-prefix normalize weight pos-label hard by group time window time-unit report title "
        "exact-distcal json markdown plot alpha confidence-level adjust min-rows sort all" + _INPUT,
    ),
    Command(
        "test",
        "are these outcomes plausible if the predictions are calibrated? Prints a p-value for any measure",
        (
            ("test with the default statistic, multiscale ATB", f"truthcal test {_CSV}"),
            ("were the predictions fitted on these outcomes?", f"truthcal test {_CSV} --alternative less"),
            ("use another statistic", f"truthcal test {_CSV} --measure ece"),
        ),
        "files class proba proba-prefix normalize weight pos-label hard group statistic alternative method n-resamples "
        "seed json markdown forecast-time time-unit" + _INPUT,
    ),
    Command(
        "compare",
        "which models have the better ATB (calibration), and which the better Brier score? All pairs",
        (
            ("compare two columns of a file", f"truthcal compare {_CSV} --proba old --proba new"),
            ("compare all pairs of three columns", f"truthcal compare {_CSV} --proba a,b,c"),
            ("compare two files, joined on a column", "truthcal compare old.csv new.csv --key id"),
            ("compare two models of many classes", f"truthcal compare {_CSV} --proba-prefix old_ --proba-prefix new_"),
        ),
        "rows class probas proba-prefix normalize weight pos-label hard group key compared confidence-level report "
        "title exact-distcal json markdown forecast-time time-unit" + _INPUT,
    ),
    Command(
        "measures",
        "compute calibration measures and list their properties",
        (
            ("compute all measures", f"truthcal measures {_CSV}"),
            ("compute two measures", f"truthcal measures {_CSV} --measure atb --measure smcal"),
            ("list all measures", "truthcal measures --list"),
        ),
        "rows? label proba weight pos-label measures list json markdown forecast-time time-unit" + _INPUT,
    ),
    Command(
        "audit",
        "does lying pay? Prints the scores of honest and dishonest forecasts under each measure",
        (
            ("use these predictions as the true probabilities", f"truthcal audit {_CSV} --proba score"),
            ("audit two events", "truthcal audit --truth 0.25,0.75"),
            ("audit samples from a population", "truthcal audit --truth 0.2,0.4,0.6,0.8 --stage ex_ante --n-rows 4"),
        ),
        "rows? proba-as-truth where truth stage n-rows measures max-rows seed json markdown",
    ),
    Command(
        "sketch",
        "reduce files of any size to a small, mergeable sketch that other commands can read",
        (
            ("sketch one day", "truthcal sketch monday.parquet -o monday.sketch --proba p --label y"),
            ("build one sketch per country", "truthcal sketch 'day-*.csv' -o week.sketch --by country"),
            ("rows of a match belong together", "truthcal sketch monday.csv -o monday.sketch --group match_id"),
        ),
        "files label proba weight pos-label by group output buckets forecast-time time-unit" + _INPUT,
    ),
    Command(
        "merge",
        "merge sketches into the sketch of all their rows",
        (
            ("merge days into a week", "truthcal merge monday.sketch tuesday.sketch -o week.sketch"),
            ("then assess it", "truthcal assess week.sketch"),
            ("sketches by day and region: add up the days", "truthcal merge 'day-*.sketch' --by region -o out.sketch"),
        ),
        "sketches roll-up output",
    ),
    Command(
        "recalibrate",
        "correct miscalibrated probabilities: choose and store a correction, or apply a stored one",
        (
            ("choose a correction, if one is needed, and store it", "truthcal recalibrate train.csv -o fix.json"),
            ("add a corrected column to new rows", "truthcal recalibrate --apply fix.json new.csv -o out.csv"),
            ("print the correction as SQL", "truthcal recalibrate --apply fix.json --sql postgres --proba score"),
            ("use one method, and look at it", "truthcal recalibrate train.csv --method isotonic --report fix.html"),
        ),
        "rows? label proba weight pos-label hard group fix apply sql recalibration-method report title alpha "
        "confidence-level seed json markdown forecast-time time-unit" + _INPUT,
    ),
    Command(
        "report",
        "write the HTML report, one self-contained file",
        (
            ("write predictions.html", f"truthcal report {_CSV}"),
            ("report on two models, by region", f"truthcal report {_CSV} --proba a --proba b --by region -o out.html"),
        ),
        "files class probas proba-prefix normalize weight pos-label hard by group time window time-unit page title "
        "exact-distcal alpha confidence-level adjust min-rows" + _INPUT,
    ),
    Command(
        "check",
        "gate for CI; exit status 0: pass, 1: fail, 2: usage error or invalid data, 3: too little data",
        (
            ("fail if miscalibration is significant at level 0.01", f"truthcal check {_CSV} --alpha 0.01"),
            ("fail if the lower confidence limit of the error exceeds 0.03", f"truthcal check {_CSV} --max-error 0.03"),
            (
                "add the result to the summary of a GitHub job",
                f'truthcal check {_CSV} --summary "$GITHUB_STEP_SUMMARY"',
            ),
        ),
        "files class proba proba-prefix normalize weight pos-label hard by group gate-alpha max-error confidence-level "
        "summary report title exact-distcal adjust min-rows sort all verbose json markdown forecast-time time-unit"
        + _INPUT,
    ),
    Command(
        "watch",
        "monitor a stream; exit status 0: no alarm, 1: alarm, 2: usage error or invalid data, 3: too little data",
        (
            (
                "every week: score what is new, and raise an alarm if predictions are no longer calibrated",
                "truthcal watch 'log/*.csv' --time date --window week --state churn.tcm",
            ),
            (
                "outcomes are due after some time; also monitor each region",
                "truthcal watch loans.csv --time date --due due --by region --window month --state loans.tcm",
            ),
            ("from sketches by day", "truthcal watch days.sketch --window week --state churn.tcm --report churn.html"),
        ),
        "files label proba pos-label watch-time due watch-group by percent where watch-window until time-unit state "
        "monitor-alpha watch-report title json markdown",
    ),
    Command(
        "demo",
        "assess three example forecasters: honest, overconfident, and one that games its metric",
        (("write the data and a report into truthcal-demo/", "truthcal demo"),),
        "folder",
    ),
    Command(
        "warmup",
        "compile all code now instead of at first use, for example while a container is built",
        (("in a Dockerfile, after the installation: RUN ...", "truthcal warmup"),),
        "",
    ),
    Command(
        "completion",
        "print a shell script that completes commands, options and file names",
        (("bash", 'eval "$(truthcal completion bash)"'), ("zsh", 'eval "$(truthcal completion zsh)"')),
        "shell",
    ),
)
