/* Dense algebra for some hundred rows, in row-major Float64Arrays.

   K = L L' by Cholesky's method, rows from the left: n^3 / 6 multiplications. A matrix that is singular to
   rounding gets the least of a short ladder of jitters, relative to its mean diagonal, as in the library. */

const LADDER = [0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6];

/** L (n x n, lower) with L L' = A; `jitter` says what was added to the diagonal, a share of at least `least`.
    Throws where nothing helps. */
export function cholesky(A, n, least = 0) {
  let mean = 0;
  for (let i = 0; i < n; i++) mean += A[i * n + i] / n;
  for (const share of LADDER.filter((s) => s >= least)) {
    const L = attempt(A, n, share * mean);
    if (L) return { L, jitter: share * mean };
  }
  throw new Error(
    "The matrix is not positive definite: points lie too close together, or the noise is too small.",
  );
}

function attempt(A, n, jitter) {
  const L = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    const ri = i * n;
    for (let j = 0; j <= i; j++) {
      const rj = j * n;
      let s = A[ri + j] + (i === j ? jitter : 0);
      for (let k = 0; k < j; k++) s -= L[ri + k] * L[rj + k];
      if (i === j) {
        if (!(s > 0) || !Number.isFinite(s)) return null;
        L[ri + i] = Math.sqrt(s);
      } else L[ri + j] = s / L[rj + j];
    }
  }
  return L;
}

/** L^-1 B for B (n x m), in place. */
export function forward(L, n, B, m) {
  for (let i = 0; i < n; i++) {
    const ri = i * n,
      bi = i * m;
    for (let k = 0; k < i; k++) {
      const l = L[ri + k],
        bk = k * m;
      if (l !== 0) for (let j = 0; j < m; j++) B[bi + j] -= l * B[bk + j];
    }
    const d = 1 / L[ri + i];
    for (let j = 0; j < m; j++) B[bi + j] *= d;
  }
  return B;
}

/** L'^-1 b for one vector, in place. */
export function backward(L, n, b) {
  for (let i = n - 1; i >= 0; i--) {
    let s = b[i];
    for (let k = i + 1; k < n; k++) s -= L[k * n + i] * b[k];
    b[i] = s / L[i * n + i];
  }
  return b;
}

export function logdet(L, n) {
  let s = 0;
  for (let i = 0; i < n; i++) s += Math.log(L[i * n + i]);
  return 2 * s;
}

export function dot(a, b) {
  let s = 0;
  for (let i = 0; i < a.length; i++) s += a[i] * b[i];
  return s;
}

/** A b for A (n x m). */
export function times(A, n, m, b) {
  const out = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    let s = 0;
    for (let j = 0, r = i * m; j < m; j++) s += A[r + j] * b[j];
    out[i] = s;
  }
  return out;
}

export function transposed(A, n, m) {
  const out = new Float64Array(n * m);
  for (let i = 0; i < n; i++) for (let j = 0; j < m; j++) out[j * n + i] = A[i * m + j];
  return out;
}

/** C -= sign V'V for V (n x g), C (g x g), both triangles; row by row, so that the inner loop runs along memory. */
export function lessGram(C, V, n, g, sign = 1) {
  for (let k = 0; k < n; k++) {
    const r = k * g;
    for (let i = 0; i < g; i++) {
      const v = sign * V[r + i],
        ci = i * g;
      if (v !== 0) for (let j = 0; j <= i; j++) C[ci + j] -= v * V[r + j];
    }
  }
  for (let i = 0; i < g; i++) for (let j = 0; j < i; j++) C[j * g + i] = C[i * g + j];
  return C;
}

/** Column sums of squares of V (n x g). */
export function squares(V, n, g) {
  const out = new Float64Array(g);
  for (let k = 0; k < n; k++) for (let j = 0, r = k * g; j < g; j++) out[j] += V[r + j] * V[r + j];
  return out;
}
