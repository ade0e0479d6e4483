"""Full Bayes by Markov chains.

method          the inference, and chains by themselves
sampling        rounds of chains on threads
blocks          parameters by slices, latent variables by NUTS or elliptical slices
transitions     all at once by NUTS
traced          the joint density in JAX
unconstrained   parameters as a sampler sees them
chains          what is left: draws, R-hat, effective sizes
mixture         predictions averaged over draws
"""
