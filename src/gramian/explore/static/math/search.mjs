/* The highest evidence: BFGS with steps that are halved until they climb, in the logarithms of positive
   numbers and in the mean itself. Gradients by central differences of the evidence, which serve every rule
   alike: two evidences a parameter, good to 1e-8 of the evidence. Source: Nocedal and Wright 2006, chapter 6. */

import { active } from "./kernels.mjs";
import { solve } from "./model.mjs";

const STEP = 1e-4,
  FURTHEST = 1.5,
  LIMIT = 9.2; // of a logarithm: a difference, a step, and from the start (e^9.2 = 10,000)

/** The free numbers of a problem: each with get and set, on a scale where steps are alike. */
export function free(problem, way) {
  const found = [];
  const log = (holder, key, c) => ({
    get: () => Math.log(c === undefined ? holder[key] : holder[key][c]),
    set: (t) => (c === undefined ? (holder[key] = Math.exp(t)) : (holder[key][c] = Math.exp(t))),
  });
  for (const t of active(problem.kernel)) {
    if (t.scale !== null && !t.held) found.push(log(t, "scale"));
    for (const f of t.factors) {
      for (const [key, value] of Object.entries(f.values)) {
        if (f.held.includes(key)) continue;
        if (Array.isArray(value)) value.forEach((_, c) => found.push(log(f.values, key, c)));
        else found.push(log(f.values, key));
      }
    }
  }
  const own = problem.likelihood[way.likelihood] ?? {};
  for (const key of Object.keys(own))
    if (key !== "held" && !(own.held ?? []).includes(key)) found.push(log(own, key));
  if (!problem.mean.held) found.push({ get: () => problem.mean.value, set: (t) => (problem.mean.value = t) });
  return found;
}

/** Yields after each step: {evidence, steps}; the problem's own numbers are moved. */
export function* climb(problem, way, most = 60) {
  const params = free(problem, way),
    p = params.length;
  const start = params.map((q) => q.get());
  const at = (t) => {
    t.forEach((v, i) => params[i].set(v));
    try {
      const value = solve(problem, way).evidence;
      return Number.isFinite(value) ? value : -Infinity;
    } catch {
      return -Infinity;
    }
  };
  const slope = (t) =>
    t.map((v, i) => {
      const ends = [STEP, -STEP].map((s) => at(t.map((w, j) => (j === i ? w + s : w))));
      return Number.isFinite(ends[0]) && Number.isFinite(ends[1]) ? (ends[0] - ends[1]) / (2 * STEP) : 0;
    });
  let t = start.slice(),
    value = at(t),
    g = slope(t),
    H = identity(p);
  at(t);
  for (let steps = 1; p && steps <= most; steps++) {
    let direction = H.map((row) => row.reduce((s, v, j) => s + v * g[j], 0));
    let climbs = direction.reduce((s, v, i) => s + v * g[i], 0);
    if (!(climbs > 0)) [H, direction, climbs] = [identity(p), g.slice(), g.reduce((s, v) => s + v * v, 0)];
    const longest = Math.max(...direction.map(Math.abs));
    let size = Math.min(1, FURTHEST / Math.max(longest, 1e-300)),
      next = null,
      gain = 0;
    for (let half = 0; half < 25; half++, size /= 2) {
      next = t.map((v, i) => Math.min(Math.max(v + size * direction[i], start[i] - LIMIT), start[i] + LIMIT));
      gain = at(next) - value;
      if (gain >= 1e-4 * size * climbs) break;
      next = null;
    }
    if (!next || gain < 1e-9 * (1 + Math.abs(value))) {
      if (next && gain > 0) t = next;
      value = at(t);
      yield { evidence: value, steps, done: true };
      return;
    }
    const newG = slope(next),
      s = next.map((v, i) => v - t[i]),
      u = g.map((v, i) => v - newG[i]);
    const su = s.reduce((a, v, i) => a + v * u[i], 0);
    if (su > 1e-12) H = updated(H, s, u, su);
    [t, g] = [next, newG];
    value = at(t);
    yield { evidence: value, steps, done: false };
  }
}

const identity = (p) => Array.from({ length: p }, (_, i) => Array.from({ length: p }, (_, j) => +(i === j)));

/** The inverse update of BFGS (Nocedal and Wright, equation 6.17). */
function updated(H, s, u, su) {
  const Hu = H.map((row) => row.reduce((a, v, j) => a + v * u[j], 0));
  const uHu = Hu.reduce((a, v, i) => a + v * u[i], 0);
  return H.map((row, i) =>
    row.map((v, j) => v + ((1 + uHu / su) * s[i] * s[j]) / su - (s[i] * Hu[j] + Hu[i] * s[j]) / su),
  );
}
