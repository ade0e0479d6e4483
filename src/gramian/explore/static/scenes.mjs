/* Ready-made scenes for teaching: what to see, what to try. Each is a state of the page; data are made here,
   from a seed. */

import { factor, term } from "./math/kernels.mjs";
import { LIKELIHOODS } from "./math/likelihoods.mjs";
import { normals } from "./math/special.mjs";

const round = (v, digits = 2) => Number(v.toFixed(digits));
const spread = (n, low, high) => Array.from({ length: n }, (_, i) => low + ((high - low) * i) / (n - 1));

/** Parameters of every likelihood, at their starts. */
export function likelihoods(changes = {}) {
  const all = Object.entries(LIKELIHOODS).map(([name, own]) => {
    const starts = Object.entries(own.params).map(([key, param]) => [key, param.start]);
    return [name, { ...Object.fromEntries(starts), held: [], ...(changes[name] ?? {}) }];
  });
  return Object.fromEntries(all);
}

export const way = (given = {}) => ({
  method: "exact",
  inference: "laplace",
  likelihood: "gaussian",
  size: 8,
  ...given,
});

function scene(id, title, text, tries, own) {
  return {
    id,
    title,
    text,
    tries,
    dims: 1,
    view: { x: [-5, 5], y: [-3, 3] },
    kernel: { terms: [term([factor("RBF")])] },
    mean: { value: 0, held: true },
    likelihood: likelihoods(),
    ways: [way()],
    X: [],
    y: [],
    names: { x: ["x"], y: "y" },
    ...own,
  };
}

function wave() {
  const x = [-4.2, -3.4, -2.5, -1.9, -0.6, 0.3, 1.2, 2.9, 3.3];
  const e = normals(x.length, 4);
  return { X: x.map((v) => [v]), y: x.map((v, i) => round(Math.sin(v) + 0.3 * v + 0.12 * e[i])) };
}

function seasons() {
  const x = spread(48, 0, 8).map((v) => round(v, 3)),
    e = normals(x.length, 7);
  return {
    X: x.map((v) => [v]),
    y: x.map((v, i) =>
      round(0.25 * v + 0.8 * Math.sin(2 * Math.PI * v) + 0.25 * Math.sin(v) + 0.12 * e[i] - 1),
    ),
  };
}

function step() {
  const x = spread(40, -1, 1).map((v) => round(v, 3)),
    e = normals(x.length, 3);
  return { X: x.map((v) => [v]), y: x.map((v, i) => round((v > 0 ? 1 : 0) + 0.03 * e[i], 3)) };
}

function outliers() {
  const x = spread(22, -4.5, 4.5).map((v) => round(v)),
    e = normals(x.length, 12);
  const y = x.map((v, i) => round(Math.sin(v) + 0.1 * e[i]));
  y[5] = 2.6;
  y[13] = -2.4;
  y[18] = 2.2;
  return { X: x.map((v) => [v]), y };
}

function classes() {
  const x = [
    -4.4, -3.9, -3.1, -2.8, -2.2, -1.7, -1.1, -0.7, 0.1, 0.6, 1.0, 1.4, 1.9, 2.4, 2.8, 3.3, 3.7, 4.3,
  ];
  const y = [0, 0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0];
  return { X: x.map((v) => [v]), y };
}

function counts() {
  const x = spread(28, -4.8, 4.8).map((v) => round(v)),
    e = normals(x.length, 21);
  return {
    X: x.map((v) => [v]),
    y: x.map((v, i) => Math.max(0, Math.round(Math.exp(1.1 + Math.sin(v)) * (1 + 0.45 * e[i])))),
  };
}

function many() {
  const e = normals(120, 5),
    u = spread(60, -4.9, 4.9).map((v, i) => round(v + 0.08 * e[i + 60], 3));
  return {
    X: u.map((v) => [v]),
    y: u.map((v, i) => round(Math.sin(2 * v) * (v > 0 ? 1 : 0.3) + 0.15 * e[i])),
  };
}

function plane(n, seed, f) {
  const e = normals(3 * n, seed),
    X = [],
    y = [];
  for (let i = 0; i < n; i++) {
    // even over the square: the fractions of the golden ratio's two-dimensional kin
    const a = -2.8 + 5.6 * ((0.5 + i * 0.7548776662466927) % 1),
      b = -2.8 + 5.6 * ((0.5 + i * 0.5698402909980532) % 1);
    X.push([round(a), round(b)]);
    y.push(f(a, b, e[i]));
  }
  return { X, y };
}

export const SCENES = [
  scene(
    "first",
    "First steps",
    "A Gaussian process is a distribution over functions. The kernel says which functions to expect; points say which of them remain. Where there are points the band is narrow, far away it is as wide as before.",
    [
      "Click into the picture to add a point; drag one; click it and press Delete.",
      "Move the lengthscale and watch the evidence. Then press Optimise.",
    ],
    { ...wave() },
  ),
  scene(
    "prior",
    "What a kernel believes",
    "No points yet: these are draws from the prior. Everything a Gaussian process believes before it sees data is in its kernel.",
    [
      "Exchange RBF for Matern12: the same band, rough functions.",
      "Add a factor: Periodic × RBF repeats for a while, then drifts.",
      "Add a term: Linear. Draws are then a line plus a function.",
    ],
    { kernel: { terms: [term([factor("Matern52", { lengthscale: 1.2 })])] } },
  ),
  scene(
    "bishop",
    "Bishop’s four parameters",
    "k(x, x′) = θ₀ exp(−θ₁ (x − x′)² / 2) + θ₂ + θ₃ x x′: a smooth function, a level and a line. The buttons have the six settings of figure 6.5 in Bishop’s book, Pattern Recognition and Machine Learning.",
    [
      "What does each number do alone? θ₁ is 1 / lengthscale².",
      "With θ₃ = 5 draws leave the picture: a prior about slopes is a strong statement far from 0.",
    ],
    {
      view: { x: [-1, 1], y: [-9, 9] },
      bishop: [1, 4, 0, 0],
      kernel: {
        terms: [
          term([factor("RBF", { lengthscale: 0.5 })]),
          { ...term([factor("Constant", { variance: 10 })]), on: false },
          { ...term([factor("Linear", { variance: 5 })]), on: false },
        ],
      },
    },
  ),
  scene(
    "occam",
    "Too simple, too wiggly, just right",
    "The evidence has two parts: how well the data fit, and how many data sets the model could have explained besides. A short lengthscale fits everything and pays for it.",
    [
      "Set the lengthscale to 0.1, then to 5: see which part of the evidence falls.",
      "Optimise from both: the top is in between. There may be two tops!",
    ],
    {
      kernel: { terms: [term([factor("RBF", { lengthscale: 0.25 })])] },
      likelihood: likelihoods({ gaussian: { noise: 0.02 } }),
      ...wave(),
    },
  ),
  scene(
    "season",
    "A season and a trend",
    "Each part of a kernel is a part of the function: a season that drifts (Periodic × RBF), and a trend (RBF). With the right parts the forecast continues both; with one RBF it returns to the mean at once.",
    [
      "Switch the first term off and press Optimise: the season is taken for noise.",
      "Hold the period with the lock: it is known to be 1.",
    ],
    {
      view: { x: [0, 11], y: [-3, 4] },
      kernel: {
        terms: [
          term([factor("Periodic", { period: 1 }, ["period"]), factor("RBF", { lengthscale: 8 })], 0.5),
          term([factor("RBF", { lengthscale: 4 })], 1.5),
        ],
      },
      ...seasons(),
    },
  ),
  scene(
    "eplaplace",
    "EP against Laplace",
    "Two classes: the posterior is no Gaussian any more. Laplace puts one at its top; EP matches moments; VI maximises a bound. With large scales the posterior is skewed, its top lies close to zero, and Laplace is too timid: see the evidence and the probabilities.",
    [
      "Move the scale from 1 to 100: the three part company.",
      "Which evidence would you trust to choose the lengthscale? (Kuss and Rasmussen 2005)",
    ],
    {
      kernel: { terms: [term([factor("RBF", { lengthscale: 1.2 })], 40)] },
      ways: ["laplace", "ep", "vi"].map((inference) => way({ likelihood: "bernoulli-probit", inference })),
      view: { x: [-5, 5], y: [-0.15, 1.15] },
      ...classes(),
    },
  ),
  scene(
    "counts",
    "Counts",
    "Counts are whole and never negative: the function is the logarithm of a rate. The band is wide where the rate is high, and never below zero.",
    [
      "Drag a point: it snaps to whole numbers.",
      "Compare with the negative binomial, which allows for more scatter (it needs the library).",
    ],
    {
      kernel: { terms: [term([factor("Matern52", { lengthscale: 1.5 })])] },
      mean: { value: 1, held: false },
      ways: [way({ likelihood: "poisson" })],
      view: { x: [-5, 5], y: [-1, 16] },
      ...counts(),
    },
  ),
  scene(
    "outliers",
    "Outliers",
    "Gaussian noise believes every point; three wrong ones bend the function. Student’s t gives up on points that are far from all others.",
    [
      "Drag an outlier further out: on the left the function follows, on the right it lets go.",
      "Student’s t needs the library: see the panel on the right.",
    ],
    {
      ways: [way(), way({ likelihood: "student-t", inference: "ep" })],
      likelihood: likelihoods({ gaussian: { noise: 0.05 } }),
      ...outliers(),
    },
  ),
  scene(
    "sparse",
    "Few points for many",
    "Inducing points stand for all rows. The bound (VFE) says how much is lost: it is below the exact evidence and rises to it as points are added. FITC is no bound; it hides what is missing in its noise.",
    [
      "Move the number of inducing points from 3 to 20.",
      "With too few, VFE widens its band; FITC stays sure of itself between its points.",
    ],
    {
      kernel: { terms: [term([factor("RBF", { lengthscale: 0.7 })])] },
      ways: [way(), way({ method: "vfe", size: 12 }), way({ method: "fitc", size: 12 })],
      view: { x: [-6, 6], y: [-2.5, 2.5] },
      ...many(),
    },
  ),
  scene(
    "step",
    "A step, and a deep process",
    "One kernel has one smoothness: to jump, it must be rough everywhere. A deep Gaussian process bends its input first, so that it can jump and be flat beside it.",
    [
      "Optimise the shallow model: its lengthscale becomes short, and its band wide between the points.",
      "Then fit two layers (by the library, some ten seconds).",
    ],
    {
      kernel: { terms: [term([factor("RBF", { lengthscale: 0.15 })], 0.5)] },
      mean: { value: 0.5, held: false },
      likelihood: likelihoods({ gaussian: { noise: 0.002 } }),
      ways: [way(), way({ method: "deep" })],
      view: { x: [-1.4, 1.4], y: [-0.6, 1.6] },
      ...step(),
    },
  ),
  scene(
    "map",
    "A map",
    "Two inputs: the mean as a map on the left, how unsure it is on the right. Each column has its own lengthscale; the evidence finds that one direction matters more.",
    [
      "Click into a map to add a point with the value of the slider “new points”; drag points about.",
      "Optimise: see the two lengthscales part.",
    ],
    {
      dims: 2,
      view: { x: [-3, 3], x2: [-3, 3], y: [-2.5, 2.5] },
      kernel: { terms: [term([factor("RBF", { lengthscale: [1, 1] })])] },
      names: { x: ["x₁", "x₂"], y: "y" },
      ...plane(26, 31, (a, b, e) => round(Math.sin(1.6 * a) + 0.35 * b + 0.1 * e)),
    },
  ),
  scene(
    "plane",
    "Two classes on a plane",
    "The probability of a class as a map, with the line where both are equally probable, and beside it how unsure the function is. Far from all points probabilities return to one half: the model knows that it does not know.",
    ["Add points of either class, and look at the line.", "A longer lengthscale makes a straighter line."],
    {
      dims: 2,
      view: { x: [-3, 3], x2: [-3, 3], y: [0, 1] },
      kernel: { terms: [term([factor("RBF", { lengthscale: [1.2, 1.2] })], 6)] },
      ways: [way({ likelihood: "bernoulli-logit", inference: "ep" })],
      names: { x: ["x₁", "x₂"], y: "class" },
      ...plane(28, 33, (a, b, e) => +(a * a + b * b + 0.7 * e < 3.4)),
    },
  ),
];

/** The six settings of Bishop's figure 6.5. */
export const BISHOP = [
  [1, 4, 0, 0],
  [9, 4, 0, 0],
  [1, 64, 0, 0],
  [1, 0.25, 0, 0],
  [1, 4, 10, 0],
  [1, 4, 0, 5],
];

export function bishopKernel([t0, t1, t2, t3]) {
  const off = (v, t) => ({ ...t, on: v > 0 });
  return {
    terms: [
      term([factor("RBF", { lengthscale: round(1 / Math.sqrt(t1), 6) })], t0),
      off(t2, term([factor("Constant", { variance: t2 || 10 })])),
      off(t3, term([factor("Linear", { variance: t3 || 5 })])),
    ],
  };
}

export const fresh = (id) => structuredClone(SCENES.find((s) => s.id === id) ?? SCENES[0]);
