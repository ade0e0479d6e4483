"""Models of tables without inputs: rows have latent places, columns are functions of them.

bound     the bound of Titsias and Lawrence 2010, with cells missing anywhere; its gradient
start     where a search begins: principal components, or factors where columns differ in noise
search    places, inducing points and parameters by L-BFGS, in stages
batches   the same for many rows, some of them at a time
rows      places of new rows, each by itself
state     what a fit leaves: predictions, scores and draws
"""
