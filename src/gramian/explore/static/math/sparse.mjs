/* Inducing points: f by its features at m points Z, Phi = K_xz L^-T with K_zz = L L', e = k(x, x) - |phi|^2.

       B = I + Phi' D^-1 Phi = L_B L_B',   E f = phi' B^-1 Phi' D^-1 r
       log p = -1/2 [n log 2 pi + log det D + log det B + r'D^-1 r - |L_B^-1 Phi' D^-1 r|^2] - slack

   vfe: D = noise, slack = sum e / 2 noise, a lower bound (Titsias 2009, equation 9). dtc: without the slack.
   fitc: D = noise + e (Snelson and Ghahramani 2006). Cost: n m^2. */

import { backward, cholesky, dot, forward, lessGram, logdet, squares, transposed } from "./linalg.mjs";
import { cross, diagonal, gram } from "./kernels.mjs";

/** Points evenly over the range of the rows; in two columns on a lattice of about m points. */
export function inducing(X, n, d, m) {
  const low = [],
    high = [];
  for (let c = 0; c < d; c++) {
    const column = Array.from({ length: n }, (_, i) => X[i * d + c]);
    low.push(Math.min(...column));
    high.push(Math.max(...column));
  }
  const at = (c, k, count) =>
    count === 1 ? (low[c] + high[c]) / 2 : low[c] + ((high[c] - low[c]) * k) / (count - 1);
  if (d === 1) return Float64Array.from({ length: m }, (_, k) => at(0, k, m));
  const side = Math.max(1, Math.round(Math.sqrt(m))),
    Z = [];
  for (let a = 0; a < side; a++) for (let b = 0; b < side; b++) Z.push(at(0, a, side), at(1, b, side));
  return Float64Array.from(Z);
}

export function sparse(objective, kernel, X, n, d, y, mean, noise, Z) {
  const m = Z.length / d,
    { L } = cholesky(gram(kernel, Z, m, d), m);
  const features = (A, count) => forward(L, m, cross(kernel, Z, m, A, count, d), count); // Phi' (m x count)
  const Phi = features(X, n),
    whole = diagonal(kernel, X, n, d),
    part = squares(Phi, m, n);
  const e = whole.map((k, i) => Math.max(k - part[i], 0));
  const D = e.map((v) => noise + (objective === "fitc" ? v : 0));
  const r = Float64Array.from(y, (v) => v - mean),
    B = new Float64Array(m * m);
  const scaled = transposed(Phi, m, n); // (n x m), rows over the root of D
  for (let i = 0; i < n; i++) for (let k = 0; k < m; k++) scaled[i * m + k] /= Math.sqrt(D[i]);
  lessGram(B, scaled, n, m, -1);
  for (let k = 0; k < m; k++) B[k * m + k] += 1;
  const own = cholesky(B, m).L,
    b = new Float64Array(m);
  for (let i = 0; i < n; i++) for (let k = 0; k < m; k++) b[k] += Phi[k * n + i] * (r[i] / D[i]);
  const half = forward(own, m, b.slice(), 1);
  const weights = backward(own, m, half.slice());
  const quadratic = r.reduce((s, v, i) => s + (v * v) / D[i], 0) - dot(half, half);
  const logD = D.reduce((s, v) => s + Math.log(v), 0);
  const slack = objective === "vfe" ? e.reduce((s, v) => s + v, 0) / (2 * noise) : 0;
  const fit = -0.5 * quadratic,
    complexity = -0.5 * (n * Math.log(2 * Math.PI) + logD + logdet(own, m)) - slack;
  const kind = objective === "vfe" ? "lower bound" : "approximation";
  const at = (G, g) => {
    const phi = features(G, g),
      mean_ = new Float64Array(g);
    for (let k = 0; k < m; k++) for (let j = 0; j < g; j++) mean_[j] += weights[k] * phi[k * g + j];
    return { phi, left: forward(own, m, phi.slice(), g), mean: mean_.map((v) => v + mean) };
  };
  return {
    evidence: fit + complexity,
    fit,
    complexity,
    kind,
    Z,
    moments(G, g) {
      const { phi, left, mean: f } = at(G, g),
        k = diagonal(kernel, G, g, d);
      const gone = squares(phi, m, g),
        back = squares(left, m, g);
      return { mean: f, variance: k.map((v, j) => Math.max(v - gone[j] + back[j], 0)) };
    },
    covariance(G, g) {
      const { phi, left } = at(G, g),
        C = gram(kernel, G, g, d);
      lessGram(C, phi, m, g);
      return lessGram(C, left, m, g, -1);
    },
  };
}
