"""Dense linear algebra on arrays.

factor      Cholesky for everybody: factor, inverse, solve, and one ladder of jitter
panels      the same by tiles, for many rows
tasks       pieces of work that depend on each other, on several threads
threads     pieces that do not; how many threads; BLAS on one of them
products    products of large arrays
blas        BLAS and LAPACK on blocks of an array, where they lie
hadamard    the Hadamard transform
memory      bytes: how many there are, and how many rows fit into a block
mounts      where file systems are, on Linux
"""
