"""The command line: fit, predict, show and demo, for people who have a CSV and write no code."""
