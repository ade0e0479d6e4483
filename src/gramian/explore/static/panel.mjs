/* One way of solving the problem on screen: which method, which rule, which likelihood, and its picture. What
   the page cannot solve itself, it asks the library for, or says that it needs it. */

import { el, minus, options, short } from "./dom.mjs";
import { Heat, DOUBT } from "./map.mjs";
import { Plot } from "./plot.mjs";
import { LIKELIHOODS } from "./math/likelihoods.mjs";
import { draws as drawn, needsLibrary, solve } from "./math/model.mjs";
import { slider } from "./controls.mjs";

const METHODS = [
  ["exact", "exact"],
  ["vfe", "inducing points, VFE"],
  ["fitc", "inducing points, FITC"],
  ["dtc", "inducing points, DTC"],
  ["nystrom", "Nyström (library)"],
  ["fourier", "Fourier features (library)"],
  ["cg", "conjugate gradients (library)"],
  ["deep", "deep, two layers (library)"],
];
const RULES = [
  ["laplace", "Laplace"],
  ["ep", "EP"],
  ["vi", "variational"],
];
const SIZED = ["vfe", "fitc", "dtc", "nystrom", "fourier"];
const Z95 = 1.959963984540054;

export class Panel {
  /** app: {state, library, grid, places, white, change, structure, remove, actions, ask} */
  constructor(app, way, index) {
    Object.assign(this, { app, way, index });
    this.body = el("div");
    this.own = el("p", { class: "own" });
    this.node = el(
      "article",
      { class: "panel", "aria-label": `Picture ${index + 1}` },
      this.header(),
      this.body,
      this.size(),
      this.own,
    );
    this.answer = null;
    this.kind = "";
  }

  header() {
    const { app, way, index } = this,
      { state } = app,
      family = LIKELIHOODS[way.likelihood].family;
    const parts = [];
    const choose = (label, key, pairs) => {
      const select = el("select", { "aria-label": `${label} of picture ${index + 1}` });
      options(select, pairs, way[key]);
      select.addEventListener("change", () => {
        way[key] = select.value;
        app.structure();
      });
      parts.push(select);
    };
    const model = app.opened?.model ? [["model", "the opened model"]] : [];
    const deep =
      family === "real" && state.dims === 1 ? METHODS : METHODS.filter(([name]) => name !== "deep");
    choose("Method", "method", [...model, ...deep]);
    if (way.method !== "model" && way.method !== "deep") {
      const kinds = Object.entries(LIKELIHOODS).filter(([, own]) => own.family === family);
      if (kinds.length > 1)
        choose(
          "Likelihood",
          "likelihood",
          kinds.map(([name, own]) => [name, own.library ? `${own.says} (library)` : own.says]),
        );
      if (!LIKELIHOODS[way.likelihood].closed) choose("Inference", "inference", RULES);
    }
    const close = el(
      "button",
      {
        type: "button",
        class: "small close",
        "aria-label": `Close picture ${index + 1}`,
        onclick: () => app.remove(index),
      },
      "×",
    );
    if (state.ways.length > 1) parts.push(close);
    return el("header", {}, ...parts);
  }

  /** How many points stand for all, where the method has them. */
  size() {
    const { app, way } = this;
    if (!SIZED.includes(way.method)) return null;
    const made = slider(app.state, {
      holder: way,
      key: "size",
      label: "points that stand for all",
      linear: [2, 40],
      changed: () => {
        way.size = Math.max(1, Math.min(200, Math.round(way.size)));
        made.sync();
        app.change();
      },
    });
    return made.node;
  }

  /** The picture's elements, made when the kind of picture changes. */
  draw(kind, height) {
    const key = `${kind}${height}`;
    if (key === this.kind) return;
    this.kind = key;
    const { actions } = this.app,
      title = `Posterior ${this.index + 1}`;
    if (kind === "line") {
      const host = el("div", { class: "plot" });
      this.body.replaceChildren(host);
      this.plot = new Plot(host, { title, height, actions });
    } else {
      const hosts = [0, 1].map(() => el("div", { class: "plot" })),
        captions = [el("figcaption"), el("figcaption")];
      this.captions = captions;
      this.body.replaceChildren(
        el("div", { class: "maps" }, ...hosts.map((h, k) => el("figure", {}, captions[k], h))),
      );
      this.maps = hosts.map((host) => new Heat(host, { title, actions }));
    }
  }

  needs(why) {
    this.kind = "needs";
    this.node.classList.remove("stale");
    this.evidence = null;
    const text = el("p", {}, `${why} needs the library.`);
    const how = el(
      "p",
      {},
      "Start it on your machine: ",
      el("code", {}, 'pip install "gramian[explore]"'),
      " and ",
      el("code", {}, "gramian explore"),
    );
    this.body.replaceChildren(el("div", { class: "needs" }, text, how));
    this.own.replaceChildren();
  }

  /** A button in place of a picture: what takes long is asked for. */
  offer() {
    if (this.kind === "offer" && !this.answer) return;
    this.kind = "offer";
    const button = el(
      "button",
      { type: "button", class: "main", onclick: () => this.fit(button) },
      "Fit two layers",
    );
    this.body.replaceChildren(
      el(
        "div",
        { class: "needs" },
        el("p", {}, "Two layers are fitted by the library, in some ten seconds."),
        button,
      ),
    );
    this.own.replaceChildren();
  }

  async fit(button) {
    const began = performance.now(),
      { app } = this;
    const tick = setInterval(
      () => (button.textContent = `Fitting … ${Math.round((performance.now() - began) / 1000)} s`),
      250,
    );
    button.disabled = true;
    try {
      this.answer = await app.ask(`deep${this.index}`, {
        ask: "deep",
        problem: app.problem(),
        way: this.way,
        grid: app.grid.rows,
        draws: 5,
      });
      this.seen = app.pointsKey();
      app.say("");
    } catch (error) {
      app.say(error.message);
    } finally {
      clearInterval(tick);
      this.kind = "";
      app.change();
    }
  }

  /** The numbers of the picture, from here or from the library. Returns whether it could be solved here. */
  update(height) {
    const { app, way } = this,
      { state } = app;
    if (way.method === "model" || way.method === "deep") return this.borrowed(height);
    const why = needsLibrary(state, way);
    if (why) return this.remote(why, height);
    this.node.classList.remove("stale");
    try {
      const post = solve(state, way, this.post?.sites),
        { points, count } = app.grid;
      const withDraws = state.dims === 1;
      let moments = post.moments(points, count, withDraws),
        draws = [];
      if (withDraws)
        draws = drawn(moments.covariance ?? post.covariance(points, count), count, app.white).map((f) =>
          f.map((v, j) => v + moments.mean[j]),
        );
      this.post = post;
      this.shown(
        {
          ...moments,
          draws,
          inducing: post.Z ?? [],
          evidence: post.evidence,
          kind: post.kind,
          fit: post.fit,
          complexity: post.complexity,
        },
        height,
      );
    } catch (error) {
      this.failed(error.message);
    }
    return true;
  }

  failed(text) {
    this.kind = "failed";
    this.evidence = null;
    this.body.replaceChildren(el("div", { class: "needs" }, el("p", {}, text)));
  }

  remote(why, height) {
    const { app, way } = this;
    this.post = null;
    if (!app.library.here) return (this.needs(why), false);
    const key = app.key(way);
    if (key !== this.wanted) {
      this.wanted = key;
      this.node.classList.add("stale");
      const more = app.state.dims === 1 ? { draws: 5 } : {};
      app
        .ask(`panel${this.index}`, {
          ask: "posterior",
          problem: app.problem(),
          way,
          grid: app.grid.rows,
          ...more,
        })
        .then(
          (answer) => {
            this.answer = answer;
            if (this.wanted === app.key(way)) this.node.classList.remove("stale");
            this.note = answer.note;
            app.change();
          },
          (error) => (this.failed(error.message), (this.answer = null)),
        );
    }
    if (this.answer?.mean && this.answer.mean.length === app.grid.count) this.shown(this.answer, height);
    return false;
  }

  /** A deep process, or the model that was opened: mean and ends of an interval, as the library gives them. */
  borrowed(height) {
    const { app, way } = this;
    this.post = null;
    if (way.method === "deep") {
      if (!app.library.here) return (this.needs("A deep Gaussian process"), false);
      if (!this.answer) return (this.offer(), false);
      const stale = this.seen !== app.pointsKey();
      this.node.classList.toggle("stale", stale);
      this.shown(this.answer, height);
      if (stale)
        this.own.append(
          el(
            "button",
            { type: "button", class: "small", onclick: () => ((this.answer = null), app.change()) },
            "Points have moved: fit again",
          ),
        );
      return false;
    }
    if (!app.library.here) return (this.needs("The opened model"), false);
    const key = JSON.stringify([app.state.view, app.modelColumns()]);
    if (key !== this.wanted) {
      this.wanted = key;
      app
        .ask(`panel${this.index}`, {
          ask: "model",
          problem: app.problem(),
          way,
          grid: app.grid.rows,
          columns: app.modelColumns(),
        })
        .then(
          (answer) => {
            this.answer = answer;
            app.change();
          },
          (error) => this.failed(error.message),
        );
    }
    if (this.answer) this.shown({ ...this.answer, observed: true }, height);
    return false;
  }

  /** numbers: {mean, variance | low, high, draws, evidence, ...} of f, at the grid. */
  shown(numbers, height) {
    const { app, way } = this,
      { state } = app,
      own = LIKELIHOODS[way.likelihood];
    this.evidence = numbers.evidence ?? null;
    this.parts = numbers;
    this.draw(state.dims === 1 ? "line" : "map", height);
    const { mean, variance } = numbers,
      through = way.method === "model" ? (v) => v : own.link;
    const sd = variance ? Array.from(variance, (v) => Math.sqrt(Math.max(v, 0))) : null;
    const centre = sd ? Array.from(mean, (m, j) => own.response(m, variance[j])) : mean;
    const label = app.label();
    if (state.dims === 1) {
      const low = sd ? Array.from(mean, (m, j) => through(m - Z95 * sd[j])) : numbers.low;
      const high = sd ? Array.from(mean, (m, j) => through(m + Z95 * sd[j])) : numbers.high;
      let outer = null;
      if (way.likelihood === "gaussian" && sd && state.X.length) {
        const noise = state.likelihood.gaussian.noise,
          wide = sd.map((s) => Z95 * Math.hypot(s, Math.sqrt(noise)));
        outer = [Array.from(mean, (m, j) => m - wide[j]), Array.from(mean, (m, j) => m + wide[j])];
      }
      const draws = (numbers.draws ?? []).map((f) => Array.from(f, through));
      this.plot.fit(state.view, { x: state.names.x[0], y: app.yName() });
      this.plot.show({
        grid: app.grid.points,
        mean: centre,
        low,
        high,
        outer,
        draws,
        inducing: numbers.inducing ?? [],
        half: own.family === "binary",
        points: { X: state.X, y: state.y, label },
      });
    } else {
      const { across } = app.grid,
        rows = across,
        names = { x: state.names.x[0], y: state.names.x[1] };
      const doubt = sd ?? Array.from(numbers.high, (h, j) => (h - numbers.low[j]) / (2 * Z95));
      const [first, second] = this.maps,
        binary = own.family === "binary";
      for (const map of this.maps) map.fit(state.view, names);
      const [low, high] = binary ? [0, 1] : app.steady(`mean${this.index}`, centre);
      const points = { X: state.X, y: state.y, label: { ...label, colour: (v) => (v - low) / (high - low) } };
      first.show({
        values: centre,
        across,
        rows,
        low,
        high,
        levels: binary ? [0.1, 0.25, 0.75, 0.9] : null,
        main: binary ? 0.5 : null,
        points,
      });
      const [a, b] = app.steady(`doubt${this.index}`, doubt, 0);
      second.show({
        values: doubt,
        across,
        rows,
        low: a,
        high: b,
        stops: DOUBT,
        points: { ...points, label: { ...label, colour: () => 0 } },
      });
      this.captions[0].textContent = binary
        ? `probability of ${app.className(1)}; the thick line is one half`
        : `mean of ${own.family === "count" ? "the rate" : way.method === "model" ? "y" : "f"}`;
      this.captions[1].textContent =
        way.method === "model"
          ? "standard deviation of an observation"
          : "standard deviation of f: darker is less sure";
    }
    this.caption(numbers);
  }

  caption({ evidence, kind, fit, note }) {
    const { way, app } = this,
      parts = [];
    if (evidence !== null && evidence !== undefined && app.panels.length > 1)
      parts.push(el("span", {}, "log evidence ", el("b", {}, minus(evidence.toFixed(2))), ` (${kind})`));
    if (way.method === "model")
      parts.push(el("span", {}, "the model’s own prediction of y, with its 95 % interval"));
    if (way.method === "deep" && note) parts.push(el("span", {}, note));
    else if (note) parts.push(el("span", {}, note));
    if (fit === undefined && way.method !== "model") parts.push(el("span", {}, "by the library"));
    this.own.replaceChildren(...parts);
    const what = app.state.dims === 1 ? "Mean, 95 % band and draws" : "Maps of mean and doubt";
    const said = `${what}, ${app.state.X.length} points${evidence !== null && evidence !== undefined ? `, log evidence ${short(evidence, 4)}` : ""}`;
    if (this.plot && app.state.dims === 1) this.plot.title(said);
    if (this.maps && app.state.dims > 1) for (const map of this.maps) map.title(said);
  }
}
