"""The Gram matrix: the only place where kernel values are computed."""
