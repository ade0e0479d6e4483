/* The normal distribution, the logarithm of the gamma function, and expectations under a Gaussian.

   erfc by its series of positive terms (Abramowitz and Stegun 7.1.6) below 2.5, by a continued fraction
   (7.1.14) above; log Gamma by Stirling's series after a shift (6.1.41). E g(f), f ~ N(m, v), by the
   trapezoidal rule on +-8.5 standard deviations, whose error falls exponentially for smooth g. */

const ROOT_PI = Math.sqrt(Math.PI),
  ROOT_2PI = Math.sqrt(2 * Math.PI);

/** exp(x^2) erfc(x) for x >= 0. */
function scaledErfc(x) {
  if (x < 2.5) {
    let term = x,
      sum = x;
    for (let k = 1; k < 200 && term > 1e-17 * sum; k++) sum += term *= (2 * x * x) / (2 * k + 1);
    return Math.exp(x * x) - (2 / ROOT_PI) * sum;
  }
  let t = x;
  for (let k = 6 + Math.ceil(170 / (x * x)); k >= 1; k--) t = x + k / 2 / t;
  return 1 / (ROOT_PI * t);
}

export const pdf = (z) => Math.exp(-0.5 * z * z) / ROOT_2PI;

export function cdf(z) {
  const tail = 0.5 * Math.exp(-0.5 * z * z) * scaledErfc(Math.abs(z) * Math.SQRT1_2);
  return z > 0 ? 1 - tail : tail;
}

export function logCdf(z) {
  if (z > 0) return Math.log1p(-0.5 * Math.exp(-0.5 * z * z) * scaledErfc(z * Math.SQRT1_2));
  return -0.5 * z * z + Math.log(0.5 * scaledErfc(-z * Math.SQRT1_2));
}

/** phi(z) / Phi(z), without loss far below zero. */
export function ratio(z) {
  if (z > 0) return pdf(z) / cdf(z);
  return 2 / (ROOT_2PI * scaledErfc(-z * Math.SQRT1_2));
}

export function logGamma(x) {
  let shift = 0;
  for (; x < 12; x++) shift -= Math.log(x);
  const u = 1 / (x * x);
  const series = (1 / 12 - u * (1 / 360 - u * (1 / 1260 - u * (1 / 1680 - u / 1188)))) / x;
  return shift + (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series;
}

export const sigmoid = (f) => (f >= 0 ? 1 / (1 + Math.exp(-f)) : Math.exp(f) / (1 + Math.exp(f)));
export const logSigmoid = (f) => (f >= 0 ? -Math.log1p(Math.exp(-f)) : f - Math.log1p(Math.exp(f)));

const NODES = 69;
const Z = Float64Array.from({ length: NODES }, (_, i) => -8.5 + (17 * i) / (NODES - 1));
const W = Z.map((z) => (pdf(z) * 17) / (NODES - 1));

/** E g(f) for f ~ N(m, v). */
export function expected(g, m, v) {
  const s = Math.sqrt(v);
  let total = 0;
  for (let i = 0; i < NODES; i++) total += W[i] * g(m + s * Z[i]);
  return total;
}

/** E of the three numbers that g writes, for f ~ N(m, v): g(f, out). */
export function expectedThree(g, m, v) {
  const s = Math.sqrt(v),
    at = [0, 0, 0],
    total = [0, 0, 0];
  for (let i = 0; i < NODES; i++) {
    g(m + s * Z[i], at);
    for (let k = 0; k < 3; k++) total[k] += W[i] * at[k];
  }
  return total;
}

/** log Phi(z) and phi(z) / Phi(z), of one evaluation. */
export function logCdfAndRatio(z) {
  if (z > 0) {
    const density = Math.exp(-0.5 * z * z),
      tail = 0.5 * density * scaledErfc(z * Math.SQRT1_2);
    return [Math.log1p(-tail), density / ROOT_2PI / (1 - tail)];
  }
  const scaled = scaledErfc(-z * Math.SQRT1_2);
  return [-0.5 * z * z + Math.log(0.5 * scaled), 2 / (ROOT_2PI * scaled)];
}

/** log Z, mean and variance of exp(logp(f)) N(f; m, v), the largest exponent taken out first. */
export function tilted(logp, m, v) {
  const s = Math.sqrt(v),
    at = new Float64Array(NODES);
  let top = -Infinity;
  for (let i = 0; i < NODES; i++) top = Math.max(top, (at[i] = logp(m + s * Z[i]) - 0.5 * Z[i] * Z[i]));
  let zero = 0,
    one = 0,
    two = 0;
  for (let i = 0; i < NODES; i++) {
    const w = Math.exp(at[i] - top);
    zero += w;
    one += w * Z[i];
    two += w * Z[i] * Z[i];
  }
  const mean = one / zero,
    log = Math.log((zero * 17) / (NODES - 1) / ROOT_2PI) + top;
  return { log, mean: m + s * mean, var: v * (two / zero - mean * mean) };
}

/** Standard normal numbers from a seed: the same ones for the same seed, in every browser. */
export function normals(count, seed) {
  let a = seed >>> 0;
  const uniform = () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const out = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    out[i] = Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  }
  return out;
}
