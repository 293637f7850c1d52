"""Inference for predictions with many classes: test, size of the error, verdict, comparison."""
