"""Features: phi with K ~ Phi Phi', chosen once, and at given parameters a block of rows at a time.

base        the contract: Basis, FeatureMap
nystrom     landmarks: Phi = K_xz L^-T
fourier     random frequencies of a stationary kernel
spectral    how frequencies are drawn
"""
