// Runs the page's mathematics for the tests: questions as JSON on standard input, answers on standard output.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const base = pathToFileURL(`${process.argv[2]}/`);
const load = (name) => import(new URL(name, base));
const { solve, draws } = await load("math/model.mjs");
const { gram, cross, diagonal } = await load("math/kernels.mjs");
const { climb } = await load("math/search.mjs");
const special = await load("math/special.mjs");
const { python } = await load("code.mjs");
const { SCENES, BISHOP, bishopKernel } = await load("scenes.mjs");
const { readTable, tableScene } = await load("table.mjs");

const list = (values) => (values ? Array.from(values) : null);
const flat = (rows) => Float64Array.from(rows.flat());

const ANSWERS = {
  gram: ({ kernel, X, Z, dims }) => ({
    K: list(gram(kernel, flat(X), X.length, dims)),
    C: list(cross(kernel, flat(X), X.length, flat(Z), Z.length, dims)),
    diagonal: list(diagonal(kernel, flat(X), X.length, dims)),
  }),
  solve: ({ problem, way, grid }) => {
    const post = solve(problem, way),
      points = flat(grid),
      { mean, variance } = post.moments(points, grid.length);
    return {
      evidence: post.evidence,
      fit: post.fit,
      complexity: post.complexity,
      kind: post.kind,
      mean: list(mean),
      variance: list(variance),
      covariance: list(post.covariance(points, grid.length)),
    };
  },
  climb: ({ problem, way }) => {
    const path = [...climb(problem, way)].map((step) => step.evidence);
    return { path, evidence: solve(problem, way).evidence, problem };
  },
  special: ({ name, at }) => at.map((z) => special[name](z)),
  draws: ({ C, white }) =>
    draws(
      flat(C),
      C.length,
      white.map((w) => Float64Array.from(w)),
    ).map(list),
  scenes: () => SCENES.map((scene) => ({ ...scene, code: python(scene, scene.ways, scene.view) })),
  bishop: () => BISHOP.map((theta) => ({ theta, kernel: bishopKernel(theta) })),
  table: ({ name, text, xs, target, most }) => {
    try {
      const table = readTable(name, text);
      return { table, scene: tableScene(table, xs, target ?? table.target, most ?? 400) };
    } catch (error) {
      return { error: error.message };
    }
  },
};

const asked = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(asked.map(([name, question]) => ANSWERS[name](question))));
