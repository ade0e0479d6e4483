/* A problem (kernel, mean, likelihood, points) and how it is to be solved, solved here where that can be.

       problem = {dims, kernel, mean: {value, held}, likelihood: {gaussian: {noise, held: []}, ...}, X, y}
       way     = {method: "exact" | "vfe" | "fitc" | "dtc" | ..., inference, likelihood, size}

   `solve` gives the evidence and a posterior that answers for any points; with no points, the prior. */

import { cross, diagonal, gram, known } from "./kernels.mjs";
import { LIKELIHOODS } from "./likelihoods.mjs";
import { cholesky, forward, lessGram, squares, times } from "./linalg.mjs";
import { infer } from "./rules.mjs";
import { inducing, sparse } from "./sparse.mjs";

export const HERE = { methods: ["exact", "vfe", "fitc", "dtc"], rules: ["laplace", "ep", "vi"] };
export const MOST = 400; // points that are solved here: beyond, a frame is more than a tenth of a second

/** Why this is for the library alone; empty where it is not. */
export function needsLibrary(problem, way) {
  if (problem.kernel.text) return "This kernel";
  if (!known(problem.kernel)) return "This kernel";
  if (problem.X.length > MOST) return `More than ${MOST} points`;
  if (LIKELIHOODS[way.likelihood].library) return `The likelihood “${LIKELIHOODS[way.likelihood].says}”`;
  if (way.method === "deep") return "A deep Gaussian process";
  if (!HERE.methods.includes(way.method)) return `The method “${way.method}”`;
  if (way.method !== "exact" && !LIKELIHOODS[way.likelihood].closed)
    return "Inducing points for this likelihood";
  return "";
}

/** The evidence with its kind, and `moments` and `covariance` of f at points (g rows of dims numbers). */
export function solve(problem, way, start = null) {
  const { dims: d, kernel, X: rows, y } = problem,
    n = rows.length,
    mean = problem.mean.value;
  const X = Float64Array.from(rows.flat());
  if (!n) return prior(kernel, d, mean);
  const params = problem.likelihood[way.likelihood] ?? {};
  if (way.method !== "exact") {
    const Z = inducing(X, n, d, way.size ?? 10);
    return sparse(way.method, kernel, X, n, d, y, mean, params.noise, Z);
  }
  const K = gram(kernel, X, n, d);
  const post = infer(way.inference ?? "laplace", K, n, y, mean, way.likelihood, params, start);
  const left = (G, g) => {
    const C = cross(kernel, X, n, G, g, d); // (n x g)
    const f = new Float64Array(g).fill(mean);
    for (let i = 0; i < n; i++) for (let j = 0, r = i * g; j < g; j++) f[j] += post.alpha[i] * C[r + j];
    for (let i = 0; i < n; i++) for (let j = 0, r = i * g; j < g; j++) C[r + j] *= post.root[i];
    return { mean: f, V: forward(post.L, n, C, g) };
  };
  const { evidence, fit, complexity, kind, sites } = post;
  return {
    evidence,
    fit,
    complexity,
    kind,
    sites,
    moments(G, g, withCovariance = false) {
      const { mean: f, V } = left(G, g);
      if (withCovariance) {
        const C = lessGram(gram(kernel, G, g, d), V, n, g);
        const variance = new Float64Array(g).map((_, j) => Math.max(C[j * g + j], 0));
        return { mean: f, variance, covariance: C };
      }
      const gone = squares(V, n, g);
      return { mean: f, variance: diagonal(kernel, G, g, d).map((k, j) => Math.max(k - gone[j], 0)) };
    },
    covariance: (G, g) => lessGram(gram(kernel, G, g, d), left(G, g).V, n, g),
  };
}

export function prior(kernel, d, mean) {
  return {
    evidence: null,
    fit: 0,
    complexity: 0,
    kind: "",
    moments: (G, g) => ({ mean: new Float64Array(g).fill(mean), variance: diagonal(kernel, G, g, d) }),
    covariance: (G, g) => gram(kernel, G, g, d),
  };
}

/** Draws of N(0, C) from white numbers (each of g), so that they move smoothly with C. */
export function draws(C, g, white) {
  const { L } = cholesky(C, g, 1e-10); // a covariance of many close points is singular to rounding
  return white.map((w) => times(L, g, g, w));
}
