/* One algebra for all likelihoods: sites exp(h g - lam g^2 / 2) on N(0, K), f = mean + g.

       B = I + Lam^1/2 K Lam^1/2 = L L',   alpha = h - Lam^1/2 B^-1 Lam^1/2 K h,   E g = K alpha
       cov g(x), g(z) = k(x, z) - v(x)'v(z),   v(x) = L^-1 Lam^1/2 k(X, x)

   Gaussian noise is the rule that is done after one step: L L' = K + noise, alpha = (K + noise)^-1 r. Laplace: lam = -d^2 log p at the
   mode, by Newton's steps, halved where they do not climb (Rasmussen and Williams 2006, algorithm 3.1). EP:
   the moments of cavity times likelihood (3.5, in parallel and damped). VI: lam = -E d^2 log p, h = E d log p
   + lam m (Khan and Lin 2017), halved where the bound falls. The evidences are those of gramian.inference. */

import { cholesky, backward, dot, forward, logdet, squares, times } from "./linalg.mjs";
import { LIKELIHOODS, expectations, tiltedBy } from "./likelihoods.mjs";

const STEPS = 200;

/** The posterior with these sites: alpha, mean and variances at the rows, log det B, and L. */
export function condition(K, n, lam, h) {
  const root = lam.map((l) => Math.sqrt(Math.max(l, 0)));
  const B = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) B[i * n + j] = B[j * n + i] = root[i] * K[i * n + j] * root[j];
    B[i * n + i] += 1;
  }
  const { L } = cholesky(B, n);
  const t = times(K, n, n, h).map((v, i) => v * root[i]);
  backward(L, n, forward(L, n, t, 1));
  const alpha = h.map((v, i) => v - root[i] * t[i]);
  const V = new Float64Array(n * n);
  for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) V[i * n + j] = root[i] * K[i * n + j];
  const gone = squares(forward(L, n, V, n), n, n);
  const variance = gone.map((s, i) => Math.max(K[i * n + i] - s, 0));
  return { L, root, alpha, mean: times(K, n, n, alpha), variance, logdet: logdet(L, n) };
}

/** A rule by its name: the posterior, the evidence with its kind and its two parts. `start`: sites of a problem
    like it, {lam, h}, as where a point was moved a little; without them, and where they lead astray, from none. */
export function infer(rule, K, n, y, mean, likelihood, params, start = null) {
  if (LIKELIHOODS[likelihood].closed) return conjugate(K, n, y, mean, params.noise);
  const run = { laplace, ep, vi }[rule];
  if (start && start.lam.length === n) {
    const found = run(K, n, y, mean, likelihood, start);
    if (found.converged && Number.isFinite(found.evidence)) return found;
  }
  return run(K, n, y, mean, likelihood, { lam: new Float64Array(n), h: new Float64Array(n) });
}

/** K + noise itself is factored: with little noise, K / noise would lose the digits of r. */
function conjugate(K, n, y, mean, noise) {
  const r = Float64Array.from(y, (v) => v - mean),
    A = K.slice();
  for (let i = 0; i < n; i++) A[i * n + i] += noise;
  const { L } = cholesky(A, n);
  const alpha = backward(L, n, forward(L, n, r.slice(), 1));
  const fit = -0.5 * dot(r, alpha),
    complexity = -0.5 * (logdet(L, n) + n * Math.log(2 * Math.PI));
  return {
    L,
    root: new Float64Array(n).fill(1),
    alpha,
    evidence: fit + complexity,
    fit,
    complexity,
    kind: "exact",
  };
}

function laplace(K, n, y, mean, likelihood) {
  const { logp, slope, bend } = LIKELIHOODS[likelihood];
  let g = new Float64Array(n),
    alpha = new Float64Array(n);
  const psi = (at, a) => at.reduce((s, v, i) => s + logp(y[i], mean + v), 0) - 0.5 * dot(a, at);
  const sites = (at) => {
    const lam = at.map((v, i) => Math.max(-bend(y[i], mean + v), 0));
    return [lam, at.map((v, i) => slope(y[i], mean + v) + lam[i] * v)];
  };
  let value = psi(g, alpha);
  for (let step = 0; step < STEPS; step++) {
    const to = condition(K, n, ...sites(g));
    let size = 1,
      gain = -Infinity;
    for (let half = 0; half < 30; half++, size /= 2) {
      const at = g.map((v, i) => v + size * (to.mean[i] - v)),
        a = alpha.map((v, i) => v + size * (to.alpha[i] - v));
      gain = psi(at, a) - value;
      if (gain >= -1e-13 * (1 + Math.abs(value))) {
        g = at;
        alpha = a;
        value += gain;
        break;
      }
    }
    if (gain < 1e-12 * (1 + Math.abs(value))) break;
  }
  const post = condition(K, n, ...sites(g));
  return {
    ...post,
    evidence: value - 0.5 * post.logdet,
    fit: value,
    complexity: -0.5 * post.logdet,
    kind: "approximation",
  };
}

function ep(K, n, y, mean, likelihood, start) {
  let { lam, h } = start,
    damping = 0.9,
    last = Infinity,
    converged = false;
  let post = condition(K, n, lam, h);
  const cavity = (i) => {
    const v = 1 / (1 / post.variance[i] - lam[i]);
    return [v * (post.mean[i] / post.variance[i] - h[i]), v];
  };
  for (let sweep = 0; sweep < STEPS; sweep++) {
    let change = 0;
    const newLam = lam.slice(),
      newH = h.slice();
    for (let i = 0; i < n; i++) {
      const [m, v] = cavity(i);
      const t = tiltedBy(likelihood, y[i], mean + m, v);
      const l = Math.max(1 / t.var - 1 / v, 0),
        k = (t.mean - mean) / t.var - m / v;
      newLam[i] += damping * (l - lam[i]);
      newH[i] += damping * (k - h[i]);
    }
    const next = condition(K, n, newLam, newH);
    for (let i = 0; i < n; i++) {
      const s = Math.sqrt(next.variance[i]);
      change = Math.max(
        change,
        Math.abs(next.mean[i] - post.mean[i]) / s,
        Math.abs(Math.log(next.variance[i] / post.variance[i])),
      );
    }
    [lam, h, post] = [newLam, newH, next];
    converged = change < 1e-8;
    if (converged) break;
    if (change > last && sweep > 3) damping = Math.max(0.5 * damping, 0.05);
    last = change;
  }
  let terms = 0;
  for (let i = 0; i < n; i++) {
    const [m, v] = cavity(i),
      own = post.variance[i];
    const { log } = tiltedBy(likelihood, y[i], mean + m, v);
    terms += log + 0.5 * Math.log(v / own) + 0.5 * ((m * m) / v - post.mean[i] ** 2 / own);
  }
  const fit = terms + 0.5 * dot(h, post.mean),
    complexity = -0.5 * post.logdet;
  const sites = { lam, h };
  return { ...post, sites, converged, evidence: fit + complexity, fit, complexity, kind: "approximation" };
}

function vi(K, n, y, mean, likelihood, start) {
  let { lam, h } = start;
  const state = (l, k) => {
    const post = condition(K, n, l, k);
    const seen = Array.from(y, (v, i) => expectations(likelihood, v, mean + post.mean[i], post.variance[i]));
    const fit = seen.reduce((s, e) => s + e[0], 0);
    const gain = l.reduce((s, v, i) => s + v * post.variance[i], 0);
    const complexity = -0.5 * (post.logdet - gain + dot(post.mean, post.alpha));
    return { ...post, seen, fit, complexity, evidence: fit + complexity, kind: "lower bound" };
  };
  let now = state(lam, h),
    small = 0;
  for (let step = 0; step < STEPS && small < 2; step++) {
    const toLam = lam.map((v, i) => Math.max(-now.seen[i][2], 0));
    const toH = h.map((v, i) => now.seen[i][1] + toLam[i] * now.mean[i]);
    let size = 1,
      next = null;
    for (let half = 0; half < 20; half++, size /= 2) {
      const l = lam.map((v, i) => v + size * (toLam[i] - v)),
        k = h.map((v, i) => v + size * (toH[i] - v));
      next = state(l, k);
      if (next.evidence >= now.evidence - 1e-13 * (1 + Math.abs(now.evidence))) {
        [lam, h] = [l, k];
        break;
      }
      next = null;
    }
    if (!next) break;
    small = next.evidence - now.evidence < 1e-10 * (1 + Math.abs(next.evidence)) ? small + 1 : 0;
    now = next;
  }
  return { ...now, sites: { lam, h }, converged: small >= 2 };
}
