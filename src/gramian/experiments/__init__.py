"""Experiments: models and approximations side by side, on one's own data.

selection   `compare_models`: which model do the data prefer?
scoring     log p(y_i | other rows): leave-one-out, importance sampling, folds
compare     `compare`: approximations of one model, over repeated runs
methods     an approximation by its name, "nystrom:rls"
run         one run: a Trial of a Setup gives a RunRecord
measures    errors of kernel matrices, scores of probabilities, the peak of memory
store       runs on disk, so that an interrupted comparison goes on
table       the runs as people read them
progress    where a comparison is
"""
