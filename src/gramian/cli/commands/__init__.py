"""The commands and their options. What they do is in cli/ and is imported when a command runs, so that
`gramian --help` is quick.

fitting     fit, update
answers     predict, score, show, report
choosing    plan, compare, models: before a fit
reduce      reduce: tables without a target
forecast    forecast: series
teaching    explore, experiment, demo
options     how an option is written, and those that several commands have

A new command: a function in the file of its family, with `guarded` around what it does, and its
name in cli/main.py.
"""
