"""The command line, for people who have a table and write no code.

main        the entry point, and the app
commands    the commands and their options, a file a family
guard       errors as one sentence, and exit codes
voice       what is said, on which stream
speech      settings in messages as options
work        what fit, predict, score, update and show do
tasks       labels or numbers: the task of a target, and the options that belong to it
columns     which columns of a table are features
planning, compare, models, reduce, forecast, report, explore, experiment, demo    what each of these does
"""
