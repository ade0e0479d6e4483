"""Experiments by name: `gramian experiment NAME`.

base            what an experiment is: a question, cells, what a cell measures, what the results show
sets            the data sets that some need: from a folder, or from an address, by their checksums
runner          cell by cell, kept on disk, so that an interrupted experiment goes on
page            results as one HTML page
drawing         what their pictures share
teaching        posterior-covariance, kernels, prior-draws, weight-and-function-space
approximations  kernel-approximation, approximate-prediction, krylov-prediction
classes         binary-synthetic, multiclass-synthetic, jass
models          deep, latent, images-by-labels, seasons-of-crops
registry        all of them by their names
"""
