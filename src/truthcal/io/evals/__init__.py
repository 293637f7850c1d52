"""Evaluation files of language models: lm-eval samples, Inspect logs, and JSON lines with confidences."""
