"""Dense linear algebra on arrays: BLAS on blocks where they lie, Cholesky by panels, threads, the Hadamard
transform."""
