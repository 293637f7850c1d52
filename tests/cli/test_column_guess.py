"""Which column is what, for headers as people have them: one sensible reading is taken and told, others are asked."""

import json
import re
import shlex

import pytest

from truthcal.cli.column_guess import guess
from truthcal.cli.named_columns import UnclearColumns
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.find_files import find_sources
from truthcal.io.files.load import load
from truthcal.io.files.preview import Column, preview_columns

BITS = ["0", "1", "0", "1"]
PROBAS = ["0.12", "0.87", "0.35", "0.6"]
ONE_MINUS = [str(round(1 - float(p), 4)) for p in PROBAS]
MORE = ["0.22", "0.77", "0.45", "0.5"]
HARD = ["0", "1", "0", "1"]
IDS = ["17", "18", "19", "20"]
DAYS = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]
WORDS = ["a", "b", "c", "d"]
YES = ["No", "Yes", "No", "Yes"]
SURE = ["0.5", "0.97", "0.75", "0.6"]
SPECIES = ["setosa", "virginica", "versicolor", "setosa"]
PERCENT = ["12%", "87%", "35 %", "60%"]
LOGITS = ["-2.1", "1.9", "0.3", "4"]


def written(folder, columns, delimiter=","):
    path = folder / "file.csv"
    lines = [list(columns), *zip(*columns.values(), strict=True)]
    path.write_text("\n".join(delimiter.join(line) for line in lines) + "\n", encoding="utf-8")
    return path


def guessed(folder, columns, delimiter=",", **given):
    path = written(folder, columns, delimiter)
    return guess(preview_columns(find_sources(path)[0]).columns, where="file.csv", **given)


# fmt: off
GOOD = {  # one case a line
    "truthcal's own names": ({"y_true": BITS, "y_proba": PROBAS}, "y_true", "y_proba", None),
    "scikit-learn, with decisions": ({"y_true": BITS, "y_pred": HARD, "y_score": PROBAS}, "y_true", "y_score", None),
    "scikit-learn, test set": ({"": IDS, "y_test": BITS, "y_pred_proba": PROBAS}, "y_test", "y_pred_proba", None),
    "both classes": ({"label": BITS, "prob_0": ONE_MINUS, "prob_1": PROBAS}, "label", "prob_1", None),
    "both classes, the other way round": ({"p1": PROBAS, "p0": ONE_MINUS, "y": BITS}, "y", "p1", None),
    "both classes, as pandas names them": ({"0": ONE_MINUS, "1": PROBAS, "target": BITS}, "target", "1", None),
    "both classes, by words": ({"churn": YES, "prob_yes": PROBAS, "prob_no": ONE_MINUS}, "churn", "prob_yes", "Yes"),
    "Kaggle": ({"id": IDS, "target": BITS, "prediction": PROBAS}, "target", "prediction", None),
    "Titanic": ({"PassengerId": IDS, "Survived": BITS, "Pclass": ["3", "1", "2", "3"], "Sex": WORDS, "Probability": PROBAS}, "Survived", "Probability", None),
    "telecom": ({"customerID": WORDS, "SeniorCitizen": BITS, "Partner": YES, "Churn": YES, "churnProbability": PROBAS}, "Churn", "churnProbability", "Yes"),
    "fraud": ({"amount": IDS, "is_weekend": BITS, "is_fraud": BITS, "model_score": PROBAS}, "is_fraud", "model_score", None),
    "credit, a rating beside it": ({"credit_score": IDS, "prob": PROBAS, "default": BITS}, "default", "prob", None),
    "weather, in brackets": ({"day": DAYS, "P(rain)": PROBAS, "rained": YES}, "rained", "P(rain)", "Yes"),
    "language model": ({"question": WORDS, "answer": WORDS, "confidence": PROBAS, "is_correct": ["True", "False", "True", "True"]}, "is_correct", "confidence", None),
    "sports": ({"team": WORDS, "result": ["win", "loss", "win", "win"], "win_probability": PROBAS}, "result", "win_probability", "win"),
    "features in [0, 1]": ({"x1": PROBAS, "x2": MORE, "clicked": BITS, "score": PROBAS}, "clicked", "score", None),
    "one float column": ({"id": IDS, "flag": BITS, "value": PROBAS}, "flag", "value", None),
    "weights in [0, 1]": ({"label": BITS, "weight": MORE, "out": PROBAS}, "label", "out", None),
    "signs as labels": ({"label": ["-1", "1", "-1", "1"], "proba": PROBAS}, "label", "proba", 1),
    "rare event, none so far": ({"label": ["0"] * 4, "proba": PROBAS}, "label", "proba", None),
    "rare event in words, none so far": ({"label": ["NO"] * 4, "proba": PROBAS}, "label", "proba", "YES"),
    "label and its name": ({"label": BITS, "label_name": ["cat", "dog", "cat", "dog"], "prob": PROBAS}, "label", "prob", None),
    "percentages": ({"label": BITS, "probability": ["12", "87", "35", "60"]}, "label", "probability", None),
    "percentages with a sign": ({"label": BITS, "probability": ["12%", "87%", "35%", "60%"]}, "label", "probability", None),
    "logits": ({"label": BITS, "log_odds": LOGITS}, "label", "log_odds", None),
    "a probability beside percentages": ({"y": BITS, "discount": PERCENT, "prob": PROBAS}, "y", "prob", None),
    "a probability beside logits": ({"y": BITS, "logit": LOGITS, "prob": PROBAS}, "y", "prob", None),
    "decisions, all sure and judged": ({"question": WORDS, "prediction": ["x", "y", "x", "y"], "is_correct": BITS, "confidence": SURE}, "is_correct", "confidence", None),
    "decisions, judged in words": ({"prediction": ["x", "y", "x", "y"], "result": ["wrong", "right"] * 2, "confidence": SURE}, "result", "confidence", "right"),
    "sure without decisions": ({"label": BITS, "confidence": SURE}, "label", "confidence", None),
    "no-show in one word": ({"no_show": BITS, "p_noshow": PROBAS}, "no_show", "p_noshow", None),
    "no event": ({"unpaid": BITS, "prob_unpaid": PROBAS}, "unpaid", "prob_unpaid", None),
    "letters": ({"outcome": ["t", "f", "f", "t"], "P": PROBAS}, "outcome", "P", "t"),
    "failure": ({"failure": BITS, "p_failure": PROBAS}, "failure", "p_failure", None),
    "no-show": ({"no_show": BITS, "p_no_show": PROBAS}, "no_show", "p_no_show", None),
    "a negative event": ({"covid_negative": BITS, "p_covid_negative": PROBAS}, "covid_negative", "p_covid_negative", None),
    "credit": ({"loan_id": IDS, "PD": PROBAS, "ltv": MORE, "defaulted": BITS}, "defaulted", "PD", None),
    "risk of death": ({"patient": IDS, "male": BITS, "died": BITS, "predicted_risk": PROBAS}, "died", "predicted_risk", None),
    "risk, of a neutral label": ({"y": BITS, "risk": PROBAS}, "y", "risk", None),
    "risk, of churn in words": ({"churned": YES, "risk_score": PROBAS}, "churned", "risk_score", "Yes"),
    "Azure": ({"label": BITS, "Scored Labels": HARD, "Scored Probabilities": PROBAS}, "label", "Scored Probabilities", None),
    "out of fold": ({"target": BITS, "oof": PROBAS}, "target", "oof", None),
    "scikit-learn's method": ({"y": BITS, "predict_proba": PROBAS}, "y", "predict_proba", None),
    "the class by number": ({"y": BITS, "prob_class_0": ONE_MINUS, "prob_class_1": PROBAS}, "y", "prob_class_1", None),
    "clicks beside a flag": ({"mobile": BITS, "click": BITS, "pctr": PROBAS, "p_click": MORE}, "click", "p_click", None),
    "p-values": ({"outcome": BITS, "p_value": MORE, "forecast": PROBAS}, "outcome", "forecast", None),
    "Brier scores": ({"outcome": BITS, "brier_score": MORE, "proba": PROBAS}, "outcome", "proba", None),
}
# fmt: on


@pytest.mark.parametrize("name", GOOD)
def test_the_only_sensible_reading_is_taken_and_told(tmp_path, name):
    columns, label, proba, positive = GOOD[name]
    found = guessed(tmp_path, columns)
    assert (found.y_true, found.y_proba, found.pos_label) == (label, (proba,), positive)
    assert type(found.pos_label) is type(positive)
    flags = f"--label {shlex.quote(label)} --proba {shlex.quote(proba)}"
    flags += "" if positive is None else f" --pos-label {positive}"
    assert found.messages[0] == f"columns were guessed, as if you had typed: {flags}"


@pytest.mark.parametrize(
    "name", [name for name in GOOD if not {PERCENT[0], LOGITS[0], "12"} & set(GOOD[name][0][GOOD[name][2]])]
)
def test_what_is_guessed_can_be_read(tmp_path, name):
    columns, label, proba, positive = GOOD[name]
    loaded = load(find_sources(written(tmp_path, columns)), ColumnRoles.of(label, proba, None, None, positive))[proba]
    ones = {"1", "True"} if positive is None else {str(positive)}
    assert loaded.y.tolist() == [field in ones for field in columns[label]]
    assert loaded.p.tolist() == [float(field) for field in columns[proba]]


@pytest.mark.parametrize(
    ("name", "fields", "cure"),
    [
        ("prob", PERCENT, r"Percentages\? Remove the sign and divide by 100\."),
        ("logit", LOGITS, r"Apply the sigmoid"),
        ("Log-Odds", LOGITS, r"Apply the sigmoid"),
    ],
)
def test_what_is_taken_and_no_probability_is_refused_with_the_cure(tmp_path, name, fields, cure):
    columns = {"label": BITS, name: fields}
    (proba,) = guessed(tmp_path, columns).y_proba
    with pytest.raises((TypeError, ValueError), match=cure):
        load(find_sources(written(tmp_path, columns)), ColumnRoles.of("label", proba, None, None, None))


CLASSES = (
    "If the model has a column for each class, `assess`, `test`, `compare`, `report` and `check` accept the start of "
    "their names with --proba-prefix, or their names with --proba. Otherwise add a 0/1 column, of one class or of "
    "whether a decision was right, and name it with --label."
)
DECISION = "If it is the confidence in a decision, add a 0/1 column of whether the decision was right, and name it with --label."
NO_LABEL = f"holds the outcomes (0/1, True/False or two labels)? Candidates for --label: none. {CLASSES} All columns: "


def opposite(proba, other="0"):
    return f"If so, use --proba {proba}; if it is the probability of the opposite, use --proba {proba} --pos-label {other}."


def doubted(proba, label, one="1", other="0"):
    return f"Is '{proba}' of file.csv the probability that '{label}' is {one}? {opposite(proba, other)} {DECISION}"


def not_binary(label):
    return f"two labels)? Candidates for --label: '{label}'. {CLASSES}"


def too_many(label, values, candidates="none"):
    """More than two labels are no candidate for --label, which would refuse them."""
    problem = f"'{label}' of file.csv holds more than two different labels ({values})"
    rule = "outcomes must be 0/1, True/False or two labels"
    return f"two labels)? Candidates for --label: {candidates}. {problem}; {rule}. {CLASSES}"


WHICH = "holds the predicted probabilities (in [0, 1])?"
# fmt: off
ASKED = {  # one case a line
    "two probabilities": ({"game": IDS, "prob1": PROBAS, "prob2": MORE, "won": BITS}, f"Which column of file.csv {WHICH} Candidates for --proba: 'prob1', 'prob2'."),
    "raw and calibrated": ({"y": BITS, "prob": PROBAS, "prob_calibrated": MORE}, "Candidates for --proba: 'prob', 'prob_calibrated'"),
    "two models": ({"label": BITS, "model_a": PROBAS, "model_b": MORE}, "Candidates for --proba: 'model_a', 'model_b'"),
    "two scores": ({"label": BITS, "score": PROBAS, "confidence": MORE}, "Candidates for --proba: 'score', 'confidence'"),
    "two outcomes": ({"outcome_30d": BITS, "outcome_90d": BITS, "p": PROBAS}, "Which column of file.csv holds the outcomes (0/1, True/False or two labels)? Candidates for --label: 'outcome_30d', 'outcome_90d'."),
    "two events": ({"RainToday": YES, "RainTomorrow": YES, "p": PROBAS}, "Candidates for --label: 'RainToday', 'RainTomorrow'"),
    "two flags": ({"male": BITS, "smoker": BITS, "p": PROBAS}, "Candidates for --label: 'male', 'smoker'."),
    "decisions only": ({"y_true": BITS, "y_pred": HARD}, f"{WHICH} Candidates for --proba: none."),
    "three classes": ({"label": ["0", "1", "2", "0"], "member": BITS, "prob": PROBAS}, too_many("label", "0, 1, 2", "'member'")),
    "a submission without outcomes": ({"id": IDS, "target": PROBAS}, f"Candidates for --label: 'target'. Which column of file.csv {WHICH} Candidates for --proba: none. {CLASSES} All columns: 'id', 'target'."),
    "classes named like limits": ({"y": BITS, "RF high": PROBAS, "RF low": MORE, "weight": MORE}, f"{WHICH} Candidates for --proba: 'RF high', 'RF low'."),
    "soft labels beside an event": ({"churn": BITS, "target": PROBAS}, f"{WHICH} Candidates for --proba: none. All columns: 'churn', 'target'."),
    "soft labels": ({"y_true": MORE, "y_proba": PROBAS}, not_binary("y_true")),
    "percentages or something else": ({"y": BITS, "credit_score": IDS, "x": PROBAS}, "Candidates for --proba: 'credit_score', 'x'"),
    "the other class only": ({"y": BITS, "prob_0": PROBAS}, opposite("prob_0")),
    "the other class only, in words": ({"result": ["win", "loss", "win", "win"], "prob_loss": PROBAS}, opposite("prob_loss", "loss")),
    "the opposite": ({"died": BITS, "survival_probability": PROBAS}, opposite("survival_probability")),
    "the opposite, of failure": ({"failure": BITS, "p_success": PROBAS}, opposite("p_success")),
    "the opposite, of a label": ({"result": ["win", "loss"] * 2, "loss_probability": PROBAS}, opposite("loss_probability", "loss")),
    "the event and its opposite": ({"failure": BITS, "p_failure": PROBAS, "p_success": MORE}, "Candidates for --proba: 'p_failure', 'p_success'"),
    "three columns of classes": ({"y": BITS, "p_0": MORE, "p_1": PROBAS, "p_2": MORE}, "Candidates for --proba: 'p_0', 'p_1', 'p_2'"),
    "labels in other words": ({"label": ["spam", "ham", "spam", "ham"], "prob": PROBAS}, "Which label in 'label' of file.csv counts as 1, the event? It holds 'spam', 'ham'. Use --pos-label spam or --pos-label ham."),
    "labels in other numbers": ({"class": ["1", "2", "1", "2"], "prob": PROBAS}, "It holds 1, 2. Use --pos-label 1 or --pos-label 2."),
        "no names": ({"0": BITS, "0.5": PROBAS}, "the first line of file.csv holds numbers ('0', '0.5'), where it should name the columns. Add a line with names at the top"),
    "no names, with text": ({"case-1": WORDS, "1": BITS, "0.734": PROBAS}, "holds numbers ('case-1', '1', '0.734'), where it should"),
    "no rows": ({"label": [], "prob": []}, "file.csv has no rows; at least one is needed."),
    "signs for a terminal": ({"y": BITS, "prob\x1b[31m": PROBAS, "prob_b": MORE}, "Candidates for --proba: 'prob\\x1b[31m', 'prob_b'"),
    "split": ({"split": ["train", "test", "train", "test"], "fold": BITS, "p": PROBAS}, NO_LABEL),
    "confidence in a decision": ({"text_id": IDS, "true_label": BITS, "predicted_label": HARD, "confidence": SURE}, doubted("confidence", "true_label")),
    "confidence called a probability": ({"label": BITS, "pred": HARD, "prob": SURE}, doubted("prob", "label")),
    "confidence called a score, in words": ({"gold": YES, "predicted": YES, "score": SURE}, doubted("score", "gold", "'Yes'", "No")),
    "confidence, one decision so far": ({"correct_label": BITS, "predicted": ["spam"] * 4, "confidence": SURE}, doubted("confidence", "correct_label")),
    "confidence in one of three classes": ({"gold": SPECIES, "predicted": SPECIES, "confidence": PROBAS}, too_many("gold", "'setosa', 'virginica', 'versicolor'")),
    "three species": ({"species": SPECIES, "prob_setosa": PROBAS}, NO_LABEL),
    "many species": ({"species": WORDS, "prob_a": PROBAS, "note": ["s", "t", "u", "v"]}, NO_LABEL),
    "three results, and something else": ({"result": ["H", "D", "A", "H"], "neutral": BITS, "prob_H": PROBAS}, too_many("result", "'H', 'D', 'A'", "'neutral'")),
    "three numbers": ({"label": ["0", "1", "2", "0"], "prob": PROBAS}, too_many("label", "0, 1, 2")),
    "the opposite, of rain": ({"rain": BITS, "p_dry": PROBAS}, opposite("p_dry")),
    "the opposite, with a sign": ({"rain": BITS, "P(!rain)": PROBAS}, opposite("'P(!rain)'")),
    "the opposite, with a no": ({"churn": BITS, "p_no_churn": PROBAS}, opposite("p_no_churn")),
    "the opposite, of who left": ({"churned": BITS, "stay_probability": PROBAS}, opposite("stay_probability")),
    "the opposite, with a not": ({"spam": BITS, "p_not_spam": PROBAS}, opposite("p_not_spam")),
    "the opposite, with a non": ({"default": BITS, "prob_non_default": PROBAS}, opposite("prob_non_default")),
    "the opposite, in one word": ({"defaulted": BITS, "nondefault_prob": PROBAS}, opposite("nondefault_prob")),
    "the opposite, with a no in the label": ({"no_show": BITS, "p_show": PROBAS}, opposite("p_show")),
    "the opposite, of half a name": ({"home_win": BITS, "p_away_win": PROBAS}, opposite("p_away_win")),
    "the opposite, of yes": ({"attended": YES, "p_no_show": PROBAS}, opposite("p_no_show", "No")),
    "percentages beside something else": ({"y": BITS, "chance": PERCENT, "x": PROBAS}, "Candidates for --proba: 'chance', 'x'"),
    "logits beside something else": ({"y": BITS, "logit": LOGITS, "x": PROBAS}, "Candidates for --proba: 'logit', 'x'"),
    "logits that look like probabilities": ({"y": BITS, "logit": PROBAS}, opposite("logit")),
    "two columns that are not of both classes": ({"label": BITS, "prob_0": MORE, "prob_1": PROBAS}, "Candidates for --proba: 'prob_0', 'prob_1'."),
    "two columns that are not of both classes, the other way round": ({"p1": PROBAS, "p0": MORE, "y": BITS}, "Candidates for --proba: 'p1', 'p0'."),
    "two columns that are not of both classes, as pandas names them": ({"0": MORE, "1": PROBAS, "target": BITS}, "Candidates for --proba: '0', '1'."),
    "two columns that are not of both classes, by words": ({"churn": YES, "prob_yes": PROBAS, "prob_no": MORE}, "Candidates for --proba: 'prob_yes', 'prob_no'."),
    "bank marketing": ({"default": YES, "housing": YES, "y": YES, "p_subscribe": PROBAS}, "Candidates for --label: 'default', 'y'."),
    "clinical": ({"patient_id": IDS, "age": IDS, "sex": BITS, "died_30d": BITS, "risk_score": PROBAS}, opposite("risk_score")),
    "clinical, interval": ({"outcome": BITS, "risk": PROBAS, "risk_lower": MORE, "risk_upper": MORE}, opposite("risk")),
    "weather": ({"date": DAYS, "station": WORDS, "PoP": PROBAS, "observed": BITS}, opposite("PoP")),
    "tournament": ({"resolution": ["yes", "no", "no", "yes"], "community prediction": PROBAS, "n_forecasters": IDS}, opposite("'community prediction'", "no")),
    "a probability beside scores": ({"event": BITS, "score": MORE, "prob": PROBAS}, "Candidates for --proba: 'score', 'prob'."),
    "German": ({"Kunde": IDS, "Kündigung": ["ja", "nein", "ja", "nein"], "Kündigungswahrscheinlichkeit": PROBAS}, "Candidates for --label: 'Kündigung'."),
    "French": ({"résultat": ["oui", "non", "non", "oui"], "probabilité": PROBAS}, "Candidates for --label: 'résultat'."),
    "percentages with a sign, by any name": ({"label": BITS, "model": PERCENT}, "Candidates for --proba: none. All columns: 'label', 'model'."),
    "answers in many words": ({"prediction": WORDS, "label": BITS, "confidence": SURE}, doubted("confidence", "label")),
    "home and away": ({"home_win": BITS, "p_home": PROBAS}, opposite("p_home")),
    "win or loss": ({"win_loss": BITS, "win_prob": PROBAS}, opposite("win_prob")),
    "weights only": ({"label": BITS, "w": PROBAS}, WHICH),
}
# fmt: on


@pytest.mark.parametrize("name", ASKED)
def test_more_than_one_reading_or_none_is_asked_with_the_flags(tmp_path, name):
    columns, message = ASKED[name]
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        guessed(tmp_path, columns)
    assert "\n" not in str(error.value)
    assert "\x1b" not in str(error.value)


def test_a_confidence_is_not_asked_about_if_it_is_named_or_seen_below_a_half(tmp_path):
    columns = {"gold": BITS, "predicted": HARD, "score": SURE}
    assert guessed(tmp_path, columns, proba=["score"]).y_proba == ("score",)
    assert guessed(tmp_path, columns | {"score": ["0.49", *SURE[1:]]}).y_proba == ("score",)


@pytest.mark.parametrize("label", [SPECIES, WORDS, ["0", "1", "2", "0"]])
@pytest.mark.parametrize("given", [{}, {"proba": ["conf"]}])
def test_a_named_label_of_three_classes_is_refused_with_both_cures(tmp_path, label, given):
    columns = {"kind": label, "pred": label, "conf": PROBAS}
    with pytest.raises(
        ValueError,
        match=r"'kind' of file\.csv holds more than two different labels .* --proba\. Otherwise add a 0/1 column, "
        r"of one class or of whether a decision was right, and name it with --label\.$",
    ):
        guessed(tmp_path, columns, label="kind", **given)


@pytest.mark.parametrize(
    ("names", "how"),
    [
        (("s0", "s1", "s2"), "the start of their names: --proba-prefix s. Otherwise"),
        (("Prob A", "Prob B", "Prob C"), "the start of their names: --proba-prefix 'Prob '. Otherwise"),
        (("a", "b", "c"), "their names: --proba a,b,c. Otherwise"),
        (("p", "p_b", "p_c"), "their names: --proba p,p_b,p_c. Otherwise"),
        (("a", "b"), "the start of their names with --proba-prefix, or their names with --proba. Otherwise"),
    ],
)
def test_the_columns_of_classes_are_named_as_they_are(tmp_path, names, how):
    columns = {"kind": SPECIES, **dict.fromkeys(names, PROBAS)}
    with pytest.raises(ValueError, match=f"accept {re.escape(how)}"):
        guessed(tmp_path, columns, label="kind")


def test_one_label_in_the_first_rows_does_not_tell_the_other(quick, tmp_path):
    (tmp_path / "f.csv").write_text("season,p\n" + "2022,0.3\n" * 1100 + "2016,0.4\n2017,0.6\n")
    error = quick("assess", "f.csv", "--label", "season", "--proba", "p", check=2).err
    assert "the first rows of 'season' of f.csv hold only 2022, and outcomes must be 0/1, True/False or two" in error
    assert "If this label counts as 1 and the file has one other label, use --pos-label 2022; else name" in error
    error = quick("assess", "f.csv", "--label", "season", "--proba", "p", "--pos-label", 2022, check=2).err
    assert "more than two different labels (2022, 2016, 2017);" in error


def test_classes_of_which_no_value_is_known_are_refused():
    columns = [Column("kind", "text", many=True), Column("p", "number", 0.1, 0.9, (), True)]
    with pytest.raises(ValueError, match=r"'kind' of x holds more .* add a 0/1 column, of one class"):
        guess(columns, where="x", label="kind")


def test_both_questions_are_asked_at_once(tmp_path):
    with pytest.raises(
        ValueError, match=r"Candidates for --label: 'c', 'd'\. Which column of .* Candidates for --proba: 'a', 'b'\.$"
    ) as error:
        guessed(tmp_path, {"a": PROBAS, "b": MORE, "c": BITS, "d": BITS})
    assert error.value.flags == ["--label c", "--proba a"]


@pytest.mark.parametrize(
    ("columns", "flags"),
    [
        ({"y": BITS, "my prob": PROBAS, "-prob": MORE}, ["--proba 'my prob'"]),
        ({"y": BITS, "-prob": MORE, "my prob": PROBAS}, ["--proba=-prob"]),
        ({"y_true": BITS, "y_pred": HARD}, ["--proba COLUMN"]),
        ({"result": ["H", "D", "A", "H"], "neutral": BITS, "prob_H": PROBAS}, []),  # to name one is not enough
        ({"rain": BITS, "p_dry": PROBAS}, []),  # the question has the two flags to choose from
    ],
)
def test_the_flags_that_answer_a_question(tmp_path, columns, flags):
    with pytest.raises(UnclearColumns, match=r"\?") as error:
        guessed(tmp_path, columns)
    assert error.value.flags == flags


@pytest.mark.parametrize("given", [{}, {"proba": ["prob"]}])
def test_two_columns_of_one_name_are_refused(tmp_path, given):
    (tmp_path / "file.csv").write_text("y,prob,prob\n0,0.1,0.2\n1,0.7,0.8\n")
    with pytest.raises(ValueError, match=r"file\.csv has 2 columns named 'prob'; rename all but one\."):
        guess(preview_columns(find_sources(tmp_path / "file.csv")[0]).columns, where="file.csv", **given)


def test_what_is_said_of_a_guess(tmp_path):
    typed = "columns were guessed, as if you had typed:"
    said = guessed(tmp_path, {"clicked": BITS, "score": PROBAS}).messages
    assert said == (f"{typed} --label clicked --proba score",)
    said = guessed(tmp_path, {"churn": YES, "x": PROBAS}, label="churn").messages
    assert said == (f"{typed} --proba x --pos-label Yes",)
    said = guessed(tmp_path, {"churn": YES, "x": PROBAS}, label="churn", proba=["x"]).messages
    assert said == (f"{typed} --pos-label Yes",)
    said = guessed(tmp_path, {"flag": BITS, "p": PROBAS, "w": IDS}, proba=["p"]).messages
    assert said == (f"{typed} --label flag", "weights: 'w' is not used; to use it, add --weight w")
    assert guessed(tmp_path, {"y": BITS, "p": PROBAS, "w": IDS}, label="y", proba=["p"], weight="w").messages == ()


def test_columns_in_other_use_are_not_guessed(tmp_path):
    columns = {"won": BITS, "home": BITS, "prob": PROBAS, "prob_old": MORE, "week": IDS}
    assert guessed(tmp_path, columns, by=["won"], weight="prob_old").y_true == "home"
    assert guessed(tmp_path, columns, key="prob_old").y_proba == ("prob",)
    with pytest.raises(ValueError, match=r"Which column of file\.csv holds the predicted .* 'prob', 'prob_old'\.$"):
        guessed(tmp_path, columns)
    assert guessed(tmp_path, columns, proba=["prob_old", "prob"]).y_proba == ("prob_old", "prob")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"label": "Won"},
            r"file\.csv has no column 'Won' \(named by --label\); it has 'won', 'prob', 'y'\. Did you mean 'won'\?",
        ),
        ({"proba": ["prbo"]}, r"no column 'prbo' \(named by --proba\); .* Did you mean 'prob'\?"),
        ({"weight": "mass"}, r"no column 'mass' \(named by --weight\); it has 'won', 'prob', 'y'\.$"),
        ({"by": ["x"]}, r"no column 'x' \(named by --by\)"),
        ({"key": "x"}, r"no column 'x' \(named by --key\)"),
        (
            {"label": "won", "proba": ["won"]},
            r"the column 'won' is named twice, by --label and --proba; name another column",
        ),
        ({"proba": ["prob", "prob"]}, r"the column 'prob' is named twice, by --proba; name it once"),
    ],
)
def test_named_columns_must_be_there(tmp_path, given, message):
    with pytest.raises(ValueError, match=message):
        guessed(tmp_path, {"won": BITS, "prob": PROBAS, "y": IDS}, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"by": ["p"]},
            r"probabilities .* Candidates for --proba: none\. 'p' is already used for --by\. All columns: 'y', 'p', 'x'\.",
        ),
        ({"key": "p"}, r"probabilities .* 'p' is already used for --key\. "),
        ({"weight": "p"}, r"probabilities .* 'p' is already used for --weight\. "),
        ({"by": ["y"]}, r"outcomes .* Candidates for --label: none\. .* 'y' is already used for --by\. "),
        (
            {"by": ["x", "p"]},
            r"probabilities .* Candidates for --proba: none\. 'x' is already used for --by\. 'p' is already used for --by\. ",
        ),
    ],
)
def test_a_column_in_other_use_is_told_where_it_is_missed(tmp_path, given, message):
    with pytest.raises(ValueError, match=message):
        guessed(tmp_path, {"y": BITS, "p": PROBAS, "x": MORE}, **given)


@pytest.mark.parametrize("given", [{}, {"label": "z"}, {"label": "t"}, {"label": "t", "pos_label": "z"}])
def test_names_of_files_cannot_steer_a_terminal(given):
    columns = [Column(name, "number", 0.1, 0.9, (), True) for name in "ab"] + [Column("t", "text", values=("u", "v"))]
    with pytest.raises(ValueError, match=r"'x\\x1b\[31m\.csv'") as error:
        guess(columns, where="x\x1b[31m.csv", **given)
    assert "\x1b" not in str(error.value)
    where = "folder/" * 20 + "file.csv"  # the whole path is of use, however long
    with pytest.raises(ValueError, match=where):
        guess(columns, where=where, **given)


def test_a_long_list_of_columns_is_cut():
    columns = [Column(f"x{i}", "other") for i in range(20_000)]
    with pytest.raises(ValueError, match=r"it has 'x0', .*, 'x19', \.\.\.\.$"):
        guess(columns, label="y", where="file.csv")
    columns = [Column(f"x{i}", "number", 0.1, 0.9, (), True) for i in range(20_000)]
    with pytest.raises(ValueError, match=r"Candidates for --proba: 'x0', .*, 'x5' and 19,994 more\.$"):
        guess([*columns, Column("y", "bool")], where="file.csv")


def test_columns_of_the_path_make_groups_only(tmp_path):
    folder = tmp_path / "label=1"
    folder.mkdir()
    columns = preview_columns(find_sources(written(folder, {"won": BITS, "prob": PROBAS}))[0]).columns
    assert guess(columns, where="file.csv").y_true == guess(columns, where="file.csv", by=["label"]).y_true == "won"
    with pytest.raises(
        ValueError,
        match=r"--label names 'label', which is a partition column of file\.csv; only --by, --group and --time",
    ):
        guess(columns, where="file.csv", label="label")


def rows(folder, *values):
    path = folder / "file.jsonl"
    path.write_text("".join(json.dumps({"label": value, "p": 0.25}) + "\n" for value in values))
    return preview_columns(find_sources(path)[0]).columns


@pytest.mark.parametrize(
    ("values", "typed", "positive"),
    [
        ((1, 2), "2", 2),
        ((1, 2), "2.0", 2),
        ((0, 1), "0", 0),
        ((0.5, 2), "0.5", 0.5),
        ((2**53 + 1, 2**53), str(2**53 + 1), 2**53 + 1),
        ((True, False), "true", True),
        ((True, False), "0", False),
        (("ham", "spam"), "spam", "spam"),
        (("ham", "ham"), "spam", "spam"),
        (("a", "b", "c", "d"), "d", "d"),
        (("0", "1"), "1", "1"),
    ],
)
def test_a_positive_label_is_of_the_kind_of_the_column(tmp_path, values, typed, positive):
    found = guess(rows(tmp_path, *values), where="x", label="label", pos_label=typed)
    assert found.pos_label == positive
    assert type(found.pos_label) is type(positive)


@pytest.mark.parametrize(
    ("values", "typed", "message"),
    [
        ((0, 1), "yes", r"--pos-label yes: there is no such label in 'label' of x; it holds 0, 1\."),
        ((0, 1), "2", r"--pos-label 2: there is no such label in 'label' of x; it holds 0, 1\."),
        (("ham", "spam"), "Spam", r"--pos-label Spam: there is no such label in 'label' of x; it holds 'ham', 'spam'"),
        (("NO",), "No", r"--pos-label No: there is no such label in 'label' of x; it holds 'NO'\."),
        ((True, False), "maybe", r"--pos-label maybe: there is no such label in 'label' of x; it holds True, False\."),
        (
            ("a", "b", "c", "d"),
            None,
            r"'label' of x holds more than two different labels \('a', 'b', 'c', \.\.\.\); .* the model has a column for each class",
        ),
    ],
)
def test_a_positive_label_that_cannot_be(tmp_path, values, typed, message):
    with pytest.raises(ValueError, match=message):
        guess(rows(tmp_path, *values), where="x", label="label", pos_label=typed)


def test_a_pair_of_columns_follows_the_positive_label(tmp_path):
    columns = {"animal": ["cat", "dog", "cat", "dog"], "P(cat)": PROBAS, "P(dog)": ONE_MINUS}
    assert guessed(tmp_path, columns, label="animal", pos_label="dog").y_proba == ("P(dog)",)
    assert guessed(tmp_path, columns, label="animal", pos_label="cat").y_proba == ("P(cat)",)
    columns = {"y": BITS, "prob_0": PROBAS, "prob_1": ONE_MINUS}
    assert guessed(tmp_path, columns, pos_label="0").y_proba == ("prob_0",)
    # Without a table of antonyms, a name that has words of its own is asked about if the label is inverted.
    columns = {"died": BITS, "survival_probability": PROBAS}
    with pytest.raises(ValueError, match=re.escape(opposite("survival_probability", "1"))):
        guessed(tmp_path, columns, pos_label="0")
    with pytest.raises(ValueError, match=re.escape(opposite("mortality", "1"))):
        guessed(tmp_path, {"died": BITS, "mortality": PROBAS}, label="died", pos_label="0")


@pytest.mark.parametrize(
    ("label", "fields", "positive", "proba", "other"),
    [
        ("churn", YES, "No", "churn_probability", "Yes"),
        ("churn", BITS, "0", "churn_probability", "1"),
        ("clicked", BITS, "0", "p_click", "1"),
        ("clicked", ["True", "False"] * 2, "false", "p_click", "True"),
        ("no_show", BITS, "0", "p_noshow", "1"),
        ("animal", ["cat", "dog"] * 2, "dog", "cat_prob", "cat"),
    ],
)
def test_a_name_that_speaks_of_the_other_label_than_the_positive_one_is_asked(
    tmp_path, label, fields, positive, proba, other
):
    columns = {label: fields, proba: PROBAS}
    with pytest.raises(ValueError, match=re.escape(opposite(proba, other))):
        guessed(tmp_path, columns, label=label, pos_label=positive)
    assert guessed(tmp_path, columns, label=label, pos_label=other).y_proba == (proba,)
    assert guessed(tmp_path, columns, label=label, pos_label=positive, proba=[proba]).y_proba == (proba,)


@pytest.mark.parametrize(("positive", "other"), [("dog", "cat"), ("cat", "dog")])
@pytest.mark.parametrize("proba", ["p_not_dog", "p_animal", "prob_1", "p_bird"])
def test_a_name_that_is_not_the_positive_label_is_asked(tmp_path, positive, other, proba):
    with pytest.raises(ValueError, match=re.escape(opposite(proba, other))):
        guessed(tmp_path, {"animal": ["cat", "dog"] * 2, proba: PROBAS}, label="animal", pos_label=positive)


@pytest.mark.parametrize(
    ("label", "proba"),
    [
        ("pain", "p_painless"),
        ("covid_negative", "p_covid"),
        ("win_loss", "p_loss"),
        ("survived", "risk"),
        ("repaid", "PD"),
        ("died", "PD"),
        ("good", "risk"),
        ("outcome", "risk"),
        ("outcome", "p_loss"),
        ("y", "survival_prob"),
        ("won", "prob2"),
        ("y", "1-p"),
    ],
)
def test_a_name_with_words_that_the_outcome_lacks_is_asked(tmp_path, label, proba):
    with pytest.raises(ValueError, match=re.escape(opposite(proba))):
        guessed(tmp_path, {label: BITS, proba: PROBAS})


@pytest.mark.parametrize(("label", "proba"), [("loss", "p_loss"), ("home_loss", "p_home_loss")])
def test_a_column_named_after_the_label_that_counts_as_0_is_asked(tmp_path, label, proba):
    with pytest.raises(ValueError, match=re.escape(opposite(proba, "loss"))):
        guessed(tmp_path, {label: ["win", "loss"] * 2, proba: PROBAS})


@pytest.mark.parametrize("proba", ["p_no_churn", "prob_no", "churn_prob_no", "y_proba"])
def test_a_name_that_speaks_of_the_positive_label_is_not_asked(tmp_path, proba):
    assert guessed(tmp_path, {"churn": YES, proba: PROBAS}, pos_label="No").y_proba == (proba,)


def test_a_column_and_its_outcome_are_a_pair(tmp_path):
    columns = {"prob1": PROBAS, "prob1_outcome": BITS, "neutral": BITS, "other": MORE}
    found = guessed(tmp_path, columns)
    assert (found.y_true, found.y_proba) == ("prob1_outcome", ("prob1",))
    assert guessed(tmp_path, columns | {"prob1": PERCENT}, proba=["prob1"]).y_true == "prob1_outcome"
    with pytest.raises(ValueError, match=re.escape(opposite("prob1", "1"))):
        guessed(tmp_path, columns, pos_label="0")


def test_several_pairs_are_asked_and_never_mixed(tmp_path):
    columns = {"prob1": PROBAS, "prob1_outcome": BITS, "prob2": ONE_MINUS, "prob2_outcome": BITS[::-1]}
    with pytest.raises(UnclearColumns, match=r"Candidates for --label: 'prob1_outcome', 'prob2_outcome'\.$") as error:
        guessed(tmp_path, columns)
    assert error.value.flags == ["--label prob1_outcome"]  # the outcome column decides
    assert guessed(tmp_path, columns, proba=["prob2"]).y_true == "prob2_outcome"
    assert guessed(tmp_path, columns, label="prob2_outcome").y_proba == ("prob2",)


def test_columns_that_add_up_to_one_are_all_candidates(tmp_path):
    columns = {"won": BITS, "prob_home": PROBAS, "prob_away": ONE_MINUS}
    with pytest.raises(ValueError, match=r"Candidates for --proba: 'prob_home', 'prob_away'\.$"):
        guessed(tmp_path, columns)


def test_a_file_joined_to_another_may_do_without_outcomes(tmp_path):
    found = guessed(tmp_path, {"id": IDS, "prob": PROBAS, "a": WORDS}, key="id", label_elsewhere="won")
    assert (found.y_true, found.y_proba, found.pos_label) == ("won", ("prob",), None)
    assert found.messages == ("columns were guessed, as if you had typed: --proba prob",)
    found = guessed(tmp_path, {"id": IDS, "prob": PROBAS, "won": YES, "y": BITS}, key="id", label_elsewhere="won")
    assert (found.y_true, found.pos_label) == ("won", "Yes")
    assert len(found.messages) == 1


@pytest.mark.parametrize(
    ("others", "said"),
    [(["target"], "'target'"), (["seen"], "'seen'"), (["y", "label"], "'y', 'label'"), (["a", "b"], "'a', 'b'")],
)
def test_outcomes_that_are_not_looked_at_are_told(tmp_path, others, said):
    columns = {"id": IDS, "prob": PROBAS, **dict.fromkeys(others, BITS)}
    found = guessed(tmp_path, columns, key="id", label_elsewhere="won")
    assert found.messages[1:] == (f"outcomes are taken from the other file, not from {said} in this file",)


def test_a_file_joined_to_another_is_asked_if_it_speaks_of_the_opposite(tmp_path):
    columns = {"id": IDS, "survival_prob": PROBAS}
    with pytest.raises(
        ValueError,
        match=r"use --proba survival_prob; if .* opposite, add a column of 1 minus these values and name that\.",
    ):
        guessed(tmp_path, columns, key="id", label_elsewhere="died")
    with pytest.raises(
        ValueError,
        match=r"use --proba survival_prob; if .* opposite, add a column of 1 minus these values and name that\.",
    ):
        guessed(tmp_path, columns, key="id", label_elsewhere="died", pos_label="0")
    given = {"key": "id", "label_elsewhere": "died", "pos_label": "0", "proba": ["survival_prob"]}
    assert guessed(tmp_path, columns, **given).pos_label is None
    columns = {"id": IDS, "prob_0": PROBAS, "prob_1": ONE_MINUS}
    assert guessed(tmp_path, columns, key="id", label_elsewhere="died").y_proba == ("prob_1",)
    columns = {"id": IDS, "pred": HARD, "prob": SURE}
    with pytest.raises(
        ValueError, match=r"Is 'prob' of .* that 'died' is 1\? .* the confidence in a decision, add a 0/1"
    ):
        guessed(tmp_path, columns, key="id", label_elsewhere="died")


def test_probabilities_alone_where_no_outcomes_are_needed(tmp_path):
    columns = {"": IDS, "prob": SURE, "pred": HARD, "target": BITS, "w": IDS}
    found = guessed(tmp_path, columns, label_elsewhere="")
    assert (found.y_true, found.y_proba, found.pos_label) == ("", ("prob",), None)
    assert found.messages == ("columns were guessed, as if you had typed: --proba prob",)


@pytest.mark.parametrize(
    "columns", [{"a": PROBAS, "b": MORE, "y": BITS}, {"y": BITS}, {"0.5": PROBAS, "0.7": MORE}, {"species": SPECIES}]
)
def test_questions_are_about_probabilities_alone_where_no_outcomes_are_needed(tmp_path, columns):
    with pytest.raises(ValueError, match=r"--proba") as error:
        guessed(tmp_path, columns, label_elsewhere="")
    assert "label" not in str(error.value)
    assert "outcomes" not in str(error.value)
