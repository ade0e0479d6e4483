"""The command line: fit, predict, show, plan, compare and demo, for people who have a CSV and write no code.

main        the commands and their options
guard       errors as one sentence, and exit codes
voice       what is said, on which stream
speech      settings in messages as options
work        fit, predict and show
tasks       labels or numbers: the task of a target, and the options that belong to it
columns     which columns of a table are features
planning    plan
compare     compare
demo        the airline's passengers, from data to picture
"""
