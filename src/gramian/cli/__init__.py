"""The command line: fit, predict, show, plan, compare and demo, for people who have a CSV and write no
code."""
