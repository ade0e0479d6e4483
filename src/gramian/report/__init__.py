"""What a fitted model tells people.

facts       what is known of the data, also where the data are not there
notes       contradictions, parameters at their limits, and what that means
rows        what the rows tell by themselves: names of rows, repeats, counts
summary     the model on a page
evaluation  how good predictions are: scores, coverage, calibration
relevance   which columns matter
quality     the same of training rows, each foretold from all the others
document    sections of facts, tables and pictures: a page as a value
held        rows against what was foretold of them, and against the simplest methods
codes       what a report looks for, by codes that stay
checks      what was found
pictures    what its pictures show
health      the report: a summary with all of these
html        a summary as a page, or for a notebook
"""
