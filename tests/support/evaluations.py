"""Evaluation files of language models for tests, by the documented schemas."""

import hashlib
import json

import numpy as np

TEXTS = ("Paris", "the city of Rome", "Lyon", "Oslo, in Norway")


def sample(doc_id, likelihoods, correct, /, **more):
    """A line of a samples file as lm-eval 0.4.13 writes it: numbers of responses and the target are text."""
    texts = TEXTS[: len(likelihoods)]
    pairs = [[str(x), "False"] for x in likelihoods]
    arguments = {f"gen_args_{k}": {"arg_0": "Capital?", "arg_1": f" {text}"} for k, text in enumerate(texts)}
    line = {
        "doc_id": doc_id,
        "doc": {"question": "Capital?", "subject": ("north", "south")[doc_id % 2]},
        "target": str(correct),
        "arguments": arguments,
        "resps": [[pair] for pair in pairs],
        "filtered_resps": pairs,
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": hashlib.sha256(str(doc_id).encode()).hexdigest(),
        "acc": float(np.argmax(likelihoods) == correct),
    }
    return {name: value for name, value in {**line, **more}.items() if value is not ...}


def samples(n, *, exponent=1.0, options=4, seed=0):
    """Questions whose options are correct with the probabilities of softmax if `exponent` is 1."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        truth = rng.dirichlet(np.ones(options))
        lines.append(sample(i, (exponent * np.log(truth) - 20).tolist(), int(rng.choice(options, p=truth))))
    return lines


def write_lines(path, rows):
    """Write JSON lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path
