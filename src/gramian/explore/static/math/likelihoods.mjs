/* How y arises from f: log p(y | f) with its slope and bend in f, and what f means in the units of y.

       gaussian   N(y; f, noise)                       bernoulli-logit    1 / (1 + exp(-(2y - 1) f))
       poisson    mu^y exp(-mu) / y!, mu = exp(f)      bernoulli-probit   Phi((2y - 1) f)

   Gaussian integrals are closed for the probit link (Rasmussen and Williams 2006, 3.82 and 3.85), else by
   quadrature. Others (student-t, negative-binomial) are for the library alone. */

import {
  cdf,
  expected,
  expectedThree,
  logCdf,
  logCdfAndRatio,
  logGamma,
  logSigmoid,
  ratio,
  sigmoid,
  tilted,
} from "./special.mjs";

const sign = (y) => 2 * y - 1;

export const LIKELIHOODS = {
  gaussian: {
    says: "Gaussian noise",
    family: "real",
    params: { noise: { start: 0.05, kind: "level", symbol: "σ²", says: "noise variance" } },
    closed: true,
    link: (f) => f,
    response: (m) => m,
  },
  "student-t": {
    says: "Student's t (outliers)",
    family: "real",
    params: {
      scale: { start: 0.1, kind: "spread", symbol: "s", says: "scale" },
      df: { start: 4, kind: "degrees", symbol: "ν", says: "degrees of freedom" },
    },
    library: true,
    link: (f) => f,
    response: (m) => m,
  },
  "bernoulli-logit": {
    says: "two classes, logit",
    family: "binary",
    params: {},
    logp: (y, f) => logSigmoid(sign(y) * f),
    slope: (y, f) => sign(y) * sigmoid(-sign(y) * f),
    bend: (y, f) => -sigmoid(f) * sigmoid(-f),
    link: sigmoid,
    response: (m, v) => expected(sigmoid, m, v),
  },
  "bernoulli-probit": {
    says: "two classes, probit",
    family: "binary",
    params: {},
    logp: (y, f) => logCdf(sign(y) * f),
    slope: (y, f) => sign(y) * ratio(sign(y) * f),
    bend: (y, f) => {
      const z = sign(y) * f,
        r = ratio(z);
      return -r * (z + r);
    },
    tilted: (y, m, v) => {
      const root = Math.sqrt(1 + v),
        z = (sign(y) * m) / root,
        r = ratio(z);
      return { log: logCdf(z), mean: m + (sign(y) * v * r) / root, var: v - (v * v * r * (z + r)) / (1 + v) };
    },
    link: cdf,
    response: (m, v) => cdf(m / Math.sqrt(1 + v)),
  },
  poisson: {
    says: "counts (Poisson)",
    family: "count",
    params: {},
    logp: (y, f) => y * f - Math.exp(Math.min(f, 700)) - logGamma(y + 1),
    slope: (y, f) => y - Math.exp(Math.min(f, 700)),
    bend: (y, f) => -Math.exp(Math.min(f, 700)),
    link: (f) => Math.exp(Math.min(f, 700)),
    response: (m, v) => Math.exp(Math.min(m + v / 2, 700)),
  },
  "negative-binomial": {
    says: "counts, overdispersed",
    family: "count",
    params: { dispersion: { start: 0.3, kind: "shape", symbol: "δ", says: "dispersion" } },
    library: true,
    link: (f) => Math.exp(Math.min(f, 700)),
    response: (m, v) => Math.exp(Math.min(m + v / 2, 700)),
  },
};

/** log p with its slope and bend, of one evaluation. */
const TOGETHER = {
  "bernoulli-logit": (y, f, out) => {
    const s = sign(y),
      p = sigmoid(s * f),
      q = sigmoid(-s * f);
    out[0] = logSigmoid(s * f);
    out[1] = s * q;
    out[2] = -p * q;
  },
  "bernoulli-probit": (y, f, out) => {
    const s = sign(y),
      [log, r] = logCdfAndRatio(s * f);
    out[0] = log;
    out[1] = s * r;
    out[2] = -r * (s * f + r);
  },
};

/** E log p, its derivative by the mean, and E of the bend, for f ~ N(m, v). */
export function expectations(likelihood, y, m, v) {
  if (likelihood === "poisson") {
    const mu = Math.exp(Math.min(m + v / 2, 700));
    return [y * m - mu - logGamma(y + 1), y - mu, -mu];
  }
  const all = TOGETHER[likelihood];
  return expectedThree((f, out) => all(y, f, out), m, v);
}

/** log Z, mean and variance of p(y | f) N(f; m, v). */
export function tiltedBy(likelihood, y, m, v) {
  const own = LIKELIHOODS[likelihood];
  return own.tilted ? own.tilted(y, m, v) : tilted((f) => own.logp(y, f), m, v);
}
