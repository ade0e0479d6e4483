/* Kernels as the page builds them: a sum of terms, each a scale times a product of factors,

       k(x, z) = sum_t scale_t prod_f k_f(x, z)

   {terms: [{on, scale, held, factors: [{name, values: {lengthscale: 1, ...}, held: ["lengthscale"]}]}]}

   A scale of null: the term has none (Linear and Constant have a variance of their own). In two columns a
   parameter may have a number for each. Formulas and names are those of gramian.kernels; a kernel that is
   not in FACTORS travels as {text: "..."} and is for the library alone. */

const per = (value, j) => (Array.isArray(value) ? value[j] : value);

/** r^2 of two points, with the lengthscales of the columns. */
function distance2(A, i, B, j, d, lengthscale) {
  let s = 0;
  for (let c = 0; c < d; c++) {
    const u = (A[i + c] - B[j + c]) / per(lengthscale, c);
    s += u * u;
  }
  return s;
}

const stationary = (profile) => (values) => {
  const l = values.lengthscale;
  if (!Array.isArray(l)) {
    return (A, i, B, j, d) => {
      if (d === 1) {
        const u = (A[i] - B[j]) / l;
        return profile(u * u, values);
      }
      return profile(distance2(A, i, B, j, d, l), values);
    };
  }
  return (A, i, B, j, d) => profile(distance2(A, i, B, j, d, l), values);
};

/** Lengths of the points (sqrt bias, sqrt variance x), and their dot product. */
function lifted(A, i, B, j, d, { variance, bias }) {
  let xx = bias,
    zz = bias,
    xz = bias;
  for (let c = 0; c < d; c++) {
    xx += variance * A[i + c] * A[i + c];
    zz += variance * B[j + c] * B[j + c];
    xz += variance * A[i + c] * B[j + c];
  }
  return [xx, zz, xz];
}

const dotted = (A, i, B, j, d, variance) => {
  let s = 0;
  for (let c = 0; c < d; c++) s += per(variance, c) * A[i + c] * B[j + c];
  return s;
};

function shared(x, z) {
  return x * z > 0 ? Math.min(Math.abs(x), Math.abs(z)) : 0;
}

const length = { lengthscale: { start: 1, kind: "length", ard: true, symbol: "ℓ", says: "lengthscale" } };

/** What each factor is called, which numbers it has, and its value at two points. */
export const FACTORS = {
  RBF: { says: "smooth", params: length, make: stationary((r2) => Math.exp(-0.5 * r2)) },
  Matern52: {
    says: "twice differentiable",
    params: length,
    make: stationary((r2) => {
      const a = Math.sqrt(5 * r2);
      return (1 + a + (5 * r2) / 3) * Math.exp(-a);
    }),
  },
  Matern32: {
    says: "once differentiable",
    params: length,
    make: stationary((r2) => {
      const a = Math.sqrt(3 * r2);
      return (1 + a) * Math.exp(-a);
    }),
  },
  Matern12: { says: "rough", params: length, make: stationary((r2) => Math.exp(-Math.sqrt(r2))) },
  RationalQuadratic: {
    says: "smooth on many scales",
    params: { ...length, alpha: { start: 1, kind: "shape", symbol: "α", says: "alpha" } },
    make: stationary((r2, { alpha }) => Math.exp(-alpha * Math.log1p(r2 / (2 * alpha)))),
  },
  Periodic: {
    says: "repeats",
    params: {
      lengthscale: { start: 1, kind: "shape", symbol: "ℓ", says: "lengthscale (of a turn)" },
      period: { start: 2, kind: "length", symbol: "p", says: "period" },
    },
    make:
      ({ lengthscale, period }) =>
      (A, i, B, j, d) => {
        let s = 0;
        for (let c = 0; c < d; c++) s += Math.sin((Math.PI * (A[i + c] - B[j + c])) / period) ** 2;
        return Math.exp((-2 * s) / (lengthscale * lengthscale));
      },
  },
  Cosine: {
    says: "a single wave",
    params: { period: { start: 2, kind: "length", symbol: "p", says: "period" } },
    make:
      ({ period }) =>
      (A, i, B, j, d) => {
        let s = 0;
        for (let c = 0; c < d; c++) s += (A[i + c] - B[j + c]) / period;
        return Math.cos(2 * Math.PI * s);
      },
  },
  Linear: {
    says: "straight lines through 0",
    own: true,
    params: { variance: { start: 1, kind: "slope", symbol: "v", says: "variance of the slope" } },
    make:
      ({ variance }) =>
      (A, i, B, j, d) =>
        dotted(A, i, B, j, d, variance),
  },
  Polynomial: {
    says: "parabolas",
    params: {
      variance: { start: 1, kind: "slope", symbol: "v", says: "variance" },
      offset: { start: 1, kind: "shape", symbol: "c", says: "offset" },
    },
    make:
      ({ variance, offset }) =>
      (A, i, B, j, d) =>
        (dotted(A, i, B, j, d, variance) + offset) ** 2,
  },
  Constant: {
    says: "one unknown level",
    own: true,
    params: { variance: { start: 1, kind: "level", symbol: "v", says: "variance" } },
    make:
      ({ variance }) =>
      () =>
        variance,
  },
  NeuralNetwork: {
    says: "infinite network, saturating",
    params: {
      variance: { start: 10, kind: "slope", symbol: "v", says: "variance of the weights" },
      bias: { start: 1, kind: "shape", symbol: "b", says: "bias" },
    },
    make: (values) => (A, i, B, j, d) => {
      const [xx, zz, xz] = lifted(A, i, B, j, d, values),
        a = 2 * xz;
      const rest = (1 + 2 * xx) * (1 + 2 * zz) - a * a;
      return (2 / Math.PI) * Math.atan2(a, Math.sqrt(Math.max(rest, 0)));
    },
  },
  ArcCosine: {
    says: "infinite network of ramps",
    params: {
      variance: { start: 1, kind: "slope", symbol: "v", says: "variance of the weights" },
      bias: { start: 1, kind: "shape", symbol: "b", says: "bias" },
    },
    make: (values) => (A, i, B, j, d) => {
      const [xx, zz, xz] = lifted(A, i, B, j, d, values),
        norms = Math.sqrt(xx * zz);
      if (!(norms > 0)) return 0;
      const cosine = Math.max(-1, Math.min(1, xz / norms)),
        angle = Math.acos(cosine);
      return (norms * (Math.sin(angle) + (Math.PI - angle) * cosine)) / Math.PI;
    },
  },
  Brownian: {
    says: "a random walk from 0",
    params: {},
    make: () => (A, i, B, j, d) => {
      let p = 1;
      for (let c = 0; c < d; c++) p *= shared(A[i + c], B[j + c]);
      return p;
    },
  },
};

export function factor(name, values = {}, held = []) {
  const starts = Object.entries(FACTORS[name].params).map(([key, param]) => [key, param.start]);
  return { name, values: { ...Object.fromEntries(starts), ...values }, held: [...held] };
}

/** A term: factors with a scale in front, unless the only one has a variance itself. */
export function term(factors, scale = 1, held = false) {
  const own = factors.length === 1 && FACTORS[factors[0].name].own;
  return { on: true, scale: own ? null : scale, held, factors };
}

/** The terms that are switched on. */
export const active = (kernel) => (kernel.terms ?? []).filter((t) => t.on !== false && t.factors.length);

/** Whether its values can be made here. */
export const known = (kernel) =>
  !kernel.text && active(kernel).every((t) => t.factors.every((f) => f.name in FACTORS));

function values(kernel) {
  return active(kernel).map((t) => ({
    scale: t.scale ?? 1,
    parts: t.factors.map((f) => FACTORS[f.name].make(f.values)),
  }));
}

/** k(A, B): (n x m), from points in rows of d numbers. */
export function cross(kernel, A, n, B, m, d) {
  const out = new Float64Array(n * m);
  for (const { scale, parts } of values(kernel)) {
    const [first, ...others] = parts;
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < m; j++) {
        let k = scale * first(A, i * d, B, j * d, d);
        for (const part of others) k *= part(A, i * d, B, j * d, d);
        out[i * m + j] += k;
      }
    }
  }
  return out;
}

/** k(A, A), each pair once. */
export function gram(kernel, A, n, d) {
  const out = new Float64Array(n * n);
  for (const { scale, parts } of values(kernel)) {
    const [first, ...others] = parts;
    for (let i = 0; i < n; i++) {
      for (let j = 0; j <= i; j++) {
        let k = scale * first(A, i * d, A, j * d, d);
        for (const part of others) k *= part(A, i * d, A, j * d, d);
        out[i * n + j] += k;
      }
    }
  }
  for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) out[j * n + i] = out[i * n + j];
  return out;
}

/** k(x, x) of each point. */
export function diagonal(kernel, A, n, d) {
  const out = new Float64Array(n);
  for (const { scale, parts } of values(kernel)) {
    for (let i = 0; i < n; i++) out[i] += parts.reduce((k, part) => k * part(A, i * d, A, i * d, d), scale);
  }
  return out;
}
