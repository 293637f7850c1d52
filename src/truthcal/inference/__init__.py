"""Is it noise, who is better, how much could this many rows have shown: tests, intervals, power, comparison."""
