/* What is on screen as Python, for people to take away: the same kernel, points, methods and rules, with
   gm.GP, which chooses nothing by itself. Numbers are written in full, so that the evidence is the same. */

import { active } from "./math/kernels.mjs";
import { LIKELIHOODS } from "./math/likelihoods.mjs";
import { inducing } from "./math/sparse.mjs";

const GIVEN = { Polynomial: ["degree=2"], ArcCosine: ["order=1"] }; // what the page holds, and says all the same

export function number(v) {
  if (Array.isArray(v)) return `[${v.map(number).join(", ")}]`;
  const text = String(v);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

const value = (v, held) => (held ? `gm.fixed(${number(v)})` : number(v));

function factorCode(f) {
  const given = GIVEN[f.name] ?? [];
  const own = Object.entries(f.values).map(([key, v]) => `${key}=${value(v, f.held.includes(key))}`);
  return `gm.${f.name}(${[...given, ...own].join(", ")})`;
}

function termCode(t) {
  const product = t.factors.map(factorCode).join(" * ");
  if (t.scale === null) return product;
  return `${value(t.scale, t.held)} * ${t.factors.length > 1 ? `(${product})` : product}`;
}

export function kernelCode(kernel) {
  if (kernel.text) return `gm.parse_kernel(${JSON.stringify(kernel.text)})`;
  const terms = active(kernel).map(termCode);
  if (terms.length < 2) return terms[0] ?? "gm.Constant(1e-12)";
  return `(\n    ${terms.join("\n    + ")}\n)`;
}

function observed(problem, way) {
  const own = problem.likelihood[way.likelihood] ?? {},
    held = own.held ?? [];
  const given = Object.entries(own)
    .filter(([key]) => key !== "held")
    .map(([key, v]) => `${key}=${value(v, held.includes(key))}`);
  const [kind, link] = way.likelihood.split("-");
  if (way.likelihood === "gaussian") return given.join(", ");
  if (kind === "bernoulli") return `likelihood=gm.Bernoulli(link="${link}")`;
  const name = { "student-t": "StudentT", poisson: "Poisson", "negative-binomial": "NegativeBinomial" }[
    way.likelihood
  ];
  return `likelihood=gm.likelihoods.${name}(${given.join(", ")})`;
}

function meanCode(mean) {
  if (mean.held && mean.value === 0) return "";
  return `mean=${value(mean.value, mean.held)}, `;
}

function methodCode(problem, way) {
  const d = problem.dims,
    n = problem.X.length;
  if (["vfe", "fitc", "dtc"].includes(way.method)) {
    const Z = Array.from(inducing(Float64Array.from(problem.X.flat()), n, d, way.size ?? 10));
    const rows = [];
    for (let i = 0; i < Z.length; i += d) rows.push(Z.slice(i, i + d));
    return `, method=gm.Sparse(inducing=${number(rows)}, objective="${way.method}")`;
  }
  if (way.method === "nystrom") return `, method=gm.Nystrom(${way.size ?? 10})`;
  if (way.method === "fourier") return `, method=gm.Fourier(${2 * (way.size ?? 10)})`;
  return way.method === "exact" ? "" : `, method="${way.method}"`;
}

function asked(problem, way) {
  const rule = LIKELIHOODS[way.likelihood].closed ? "" : `, inference="${way.inference ?? "laplace"}"`;
  return `X, y${methodCode(problem, way)}${rule}`;
}

export function python(problem, ways, view) {
  const rows = problem.X.map((x) => number(Array.from(x)));
  const lines = ["import numpy as np", "import gramian as gm", ""];
  const d = problem.dims;
  if (rows.length) {
    lines.push(
      `X = np.array([${rows.join(", ")}])`,
      `y = np.array([${problem.y.map(number).join(", ")}])`,
      "",
    );
  }
  const grid =
    d === 1
      ? `x = np.linspace(${number(view.x[0])}, ${number(view.x[1])}, 200)[:, None]`
      : `axes = np.linspace(${number(view.x[0])}, ${number(view.x[1])}, 40), np.linspace(${number(view.x2[0])}, ${number(view.x2[1])}, 40)\n` +
        "x = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)";
  lines.push(`kernel = ${kernelCode(problem.kernel)}`, grid);
  ways.forEach((way, k) => {
    const tail = ways.length > 1 ? `_${k + 1}` : "";
    lines.push("");
    if (way.method === "deep") {
      lines.push(
        `deep${tail} = gm.DeepGPRegressor(2, random_state=0).fit(X, y)`,
        `mean${tail}, std${tail} = deep${tail}.predict(x, return_std=True, target="f")`,
      );
      return;
    }
    lines.push(`prior${tail} = gm.GP(kernel, ${meanCode(problem.mean)}${observed(problem, way)})`);
    if (!rows.length) {
      lines.push(`draws${tail} = prior${tail}.sample(x, 5)`);
      return;
    }
    const what = asked(problem, way);
    lines.push(
      `post${tail} = prior${tail}.condition(${what})`,
      `print(post${tail}.evidence)`,
      `mean${tail}, var${tail} = post${tail}.moments(x)  # of f; .predict(x) for an observation`,
      `draws${tail} = post${tail}.sample(x, 5)`,
      `# the button “Optimise”: prior${tail} = prior${tail}.fit(${what})`,
    );
  });
  return lines.join("\n").replaceAll("GP(kernel, )", "GP(kernel)") + "\n";
}
