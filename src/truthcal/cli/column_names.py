"""Words that tell what a column holds, in names of columns and in labels. Data, and no code but for the splitting."""


def _known(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Names are compared without case, accents and punctuation, as wholes and by their words. Of two lists the first counts
# more; within a list no word counts more than another, for then it is better to ask.
PROBA = (
    _known("""
        proba probas prob probs probability probabilities likelihood phat yproba yprob ypredproba ypredprob pd
        wahrscheinlichkeit probabilite vraisemblance probabilidad probabilita waarschijnlijkheid
    """),
    _known("""
        score scores scored confidence conf forecast forecasts prediction predictions predicted pred preds yhat ypred
        yscore pop estimate risk chance propensity belief certainty credence sigmoid softmax output
        vorhersage prognose konfidenz risiko prevision confiance risque pronostico prediccion previsione voorspelling
    """),
)
LABEL = (
    _known("""
        ytrue ytest yval y label labels target targets outcome outcomes actual actuals truth groundtruth gt gold
        observed observation obs true correct
        ziel zielvariable ergebnis eingetreten cible resultat etiquette observe objetivo resultado etiqueta obiettivo
        esito etichetta doel uitkomst
    """),
    _known("""
        class classe klasse event ereignis evenement response result status positive success hit occurred happened
        realized realised resolution resolved clicked click converted conversion purchased bought churn churned exited
        attrition default defaulted fraud spam died dead death mortality survived survival alive readmitted readmission
        relapse disease diagnosis sepsis cancer malignant won win winner rain rained failure failed fail anomaly attack
        toxic duplicate paid accepted approved returned accident claim subscribed
        gekundigt gekuendigt kundigung kuendigung ausfall geklickt gekauft betrug verstorben achat clic fraude deces
        desabonnement impago
    """),
)
# What a model decided, which is not what came true.
DECIDED = _known(
    "pred preds prediction predictions predicted ypred yhat hat estimate estimated forecast decision vorhersage"
)
# What stands beside a probability: the ends of an interval, errors, p-values.
BESIDE = _known("""
    lower upper lo hi low high lcl ucl ci min max std stdev sd se err error var variance threshold cutoff pvalue pval
    padj rank quantile entropy logloss brier
""")
# Who, when, and for what use.
SORTING = _known("""
    id ids key index idx uuid fold split train test valid validation holdout seed date time timestamp year month day
    week hour age sex gender
""")
WEIGHT = _known("w weight weights wt wgt sampleweight sampleweights caseweight gewicht poids peso")
# How labels are written that say no or yes; and how names of columns end that speak of 0 or of 1.
TRUTHS = (
    ("0", "1"),
    ("no", "yes"),
    ("false", "true"),
    ("n", "y"),
    ("f", "t"),
    ("negative", "positive"),
    ("neg", "pos"),
    ("nein", "ja"),
    ("non", "oui"),
    ("falsch", "wahr"),
    ("faux", "vrai"),
)
# Labels that stand for 0 and for 1.
PAIRS = (
    *TRUTHS,
    ("loss", "win"),
    ("lost", "won"),
    ("lose", "win"),
    ("l", "w"),
    ("incorrect", "correct"),
    ("wrong", "right"),
    ("failure", "success"),
)
# Words of which one side speaks of what the other one does not: who died has not survived.
OPPOSITES = tuple(
    (_known(one), _known(other))
    for one, other in (
        ("win won winner wins", "loss lost lose loses loser"),
        ("success successful succeeded pass passed", "failure failed fail fails"),
        ("died dead death deaths mortality deceased", "survived survival survive survives alive"),
        ("correct right", "incorrect wrong"),
        ("default defaulted", "paid repaid repayment"),
        ("churn churned exited attrition", "retained retention stayed"),
        ("spam", "ham"),
        ("fraud fraudulent", "legit legitimate genuine"),
        ("malignant cancer", "benign"),
        ("sick ill diseased disease", "healthy"),
        ("accepted approved accept", "rejected denied reject declined"),
        ("positive", "negative"),
        ("home", "away"),
        ("over", "under"),
        ("fake", "real"),
        ("toxic unsafe", "safe nontoxic"),
    )
)
