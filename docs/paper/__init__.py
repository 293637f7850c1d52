"""The page docs/theory/paper.md: items of the paper, the code that reproduces them, and figures."""
