/* The page: a state (scene), pictures of it, and what people do to it. Small problems are solved here, by the
   library's formulas (math/); the library, where there is one, is asked for the rest, and for what it makes of
   the same numbers. */

import { python } from "./code.mjs";
import { Controls, slider } from "./controls.mjs";
import { el, minus, options, rounded, short } from "./dom.mjs";
import { formula } from "./formula.mjs";
import { Library } from "./library.mjs";
import { Heat } from "./map.mjs";
import { cross, known } from "./math/kernels.mjs";
import { LIKELIHOODS } from "./math/likelihoods.mjs";
import { MOST, draws as drawn, needsLibrary, prior } from "./math/model.mjs";
import { climb } from "./math/search.mjs";
import { normals } from "./math/special.mjs";
import { Panel } from "./panel.mjs";
import { Plot } from "./plot.mjs";
import { BISHOP, SCENES, bishopKernel, fresh, way as newWay } from "./scenes.mjs";
import { readTable, tableScene } from "./table.mjs";

const $ = (id) => document.getElementById(id);
const GRID = 181,
  NARROW = 121,
  SIDE = 36,
  PICTURE = 48,
  COARSE = 18,
  DRAWS = 5,
  PAST = 50,
  CALM = 500;

class App {
  constructor() {
    this.past = [];
    this.panels = [];
    this.covarianceOf = "prior";
    this.newValue = { value: 1 };
    this.seeds = [11, 12].map((seed) =>
      Array.from({ length: DRAWS }, (_, k) => normals(Math.max(GRID, COARSE * COARSE), 97 * seed + k)),
    );
    this.turn = 0;
    this.ranges = new Map();
    this.actions = {
      begin: () => this.remember(),
      add: (x, y) => this.add(x, y),
      move: (i, x, y) => this.move(i, x, y),
      nudge: (i, dx, dy) => this.nudge(i, dx, dy),
      remove: (i) => this.removePoint(i),
    };
    this.controls = new Controls({
      kernel: $("kernel"),
      addTerm: $("add-term"),
      observed: $("observed"),
      changed: () => this.change(),
      rebuilt: () => this.structure(),
    });
    this.priorPlot = new Plot($("prior"), { title: "Draws from the prior", height: 230 });
    this.library = new Library((hello) => this.met(hello));
    this.listen();
    $("try-box").open = innerWidth >= 700;
    options(
      $("scene"),
      SCENES.map((s) => [s.id, s.title]),
    );
    this.open(fresh(new URLSearchParams(location.hash.slice(1)).get("scene") ?? "first"));
    this.status();
  }

  // What people do. ----------------------------------------------------------------------------------------

  listen() {
    $("scene").addEventListener("change", () => {
      if ($("scene").value === "table") return this.chosen();
      history.replaceState(null, "", `#scene=${$("scene").value}`);
      this.remember();
      this.open(fresh($("scene").value));
    });
    $("optimise").addEventListener("click", () => this.optimise());
    $("undo").addEventListener("click", () => this.undo());
    $("clear").addEventListener("click", () => {
      this.remember();
      this.state.X = [];
      this.state.y = [];
      this.change();
    });
    $("compare").addEventListener("click", () => {
      if (this.state.ways.length >= 3) return;
      this.remember();
      const last = this.state.ways.at(-1),
        rules = ["laplace", "ep", "vi"];
      const closed = LIKELIHOODS[last.likelihood].closed;
      const other = closed
        ? { method: last.method === "exact" ? "vfe" : "exact" }
        : { inference: rules[(rules.indexOf(last.inference) + 1) % 3] };
      this.state.ways.push(newWay({ ...last, method: "exact", ...other }));
      this.structure();
    });
    $("animate").addEventListener("click", () => {
      this.animated = !this.animated;
      $("animate").setAttribute("aria-pressed", String(this.animated));
      this.change();
    });
    $("copy").addEventListener("click", () => this.copy());
    $("file").addEventListener("change", () => this.read($("file").files[0]));
    for (const [id, what] of [
      ["cov-prior", "prior"],
      ["cov-post", "post"],
    ]) {
      $(id).addEventListener("click", () => {
        this.covarianceOf = what;
        for (const other of ["cov-prior", "cov-post"])
          $(other).setAttribute("aria-pressed", String(other === id));
        this.change();
      });
    }
    $("theme").addEventListener("click", () => {
      const root = document.documentElement,
        dark = getComputedStyle(root).colorScheme.includes("dark");
      root.dataset.theme = dark ? "light" : "dark";
    });
    addEventListener("keydown", (event) => {
      if (
        (event.ctrlKey || event.metaKey) &&
        event.key === "z" &&
        !/INPUT|TEXTAREA/.test(event.target.tagName)
      ) {
        event.preventDefault();
        this.undo();
      }
    });
    new ResizeObserver(() => this.change()).observe($("panels"));
  }

  remember() {
    this.past.push(structuredClone(this.state));
    if (this.past.length > PAST) this.past.shift();
    $("undo").disabled = false;
  }

  undo() {
    const before = this.past.pop();
    if (before) this.open(before);
    $("undo").disabled = !this.past.length;
  }

  get family() {
    return LIKELIHOODS[this.state.ways[0].likelihood].family;
  }

  /** A value as the likelihood can have it, to the digits that a screen shows. */
  fits(y) {
    if (this.family === "binary") return +(y >= 0.5);
    if (this.family === "count") return Math.max(0, Math.round(y));
    return this.digits(y, this.state.view.y);
  }

  digits(v, [low, high]) {
    const digits = Math.max(0, Math.min(12, 3 - Math.floor(Math.log10(high - low))));
    return Number(Math.max(low, Math.min(high, v)).toFixed(digits));
  }

  add(x, y) {
    const { state } = this;
    this.remember();
    if (state.dims === 1) {
      state.X.push([this.digits(x, state.view.x)]);
      state.y.push(this.fits(y));
    } else {
      state.X.push([this.digits(x, state.view.x), this.digits(y, state.view.x2)]);
      state.y.push(this.fits(this.newValue.value));
    }
    this.change();
  }

  move(i, x, y) {
    const { state } = this;
    if (!state.X[i]) return;
    if (state.dims === 1) {
      state.X[i] = [this.digits(x, state.view.x)];
      state.y[i] = this.fits(y);
    } else state.X[i] = [this.digits(x, state.view.x), this.digits(y, state.view.x2)];
    this.change();
  }

  nudge(i, dx, dy) {
    const { state } = this,
      [x, second] = state.X[i],
      y = second ?? state.y[i];
    const whole = state.dims === 1 && this.family !== "real";
    this.move(i, x + dx, whole ? y + Math.sign(dy) : y + dy);
  }

  removePoint(i) {
    this.remember();
    this.state.X.splice(i, 1);
    this.state.y.splice(i, 1);
    this.change();
  }

  remove(index) {
    this.remember();
    this.state.ways.splice(index, 1);
    this.structure();
  }

  async copy() {
    const text = $("code").textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const range = document.createRange();
      range.selectNodeContents($("code"));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.execCommand("copy");
    }
    $("copy").textContent = "Copied";
    setTimeout(() => ($("copy").textContent = "Copy"), 1500);
  }

  say(text) {
    $("message").textContent = text;
    $("message").hidden = !text;
  }

  // Tables. ------------------------------------------------------------------------------------------------

  async read(file) {
    if (!file) return;
    try {
      this.opened = null;
      this.hold(readTable(file.name, await file.text()));
      this.say("");
    } catch (error) {
      this.say(error.message);
    }
    $("file").value = "";
  }

  /** A table with the choice of its columns. */
  hold(table) {
    this.table = table;
    const names = table.columns.map((c) => c.name),
      numbers = table.columns.filter((c) => !c.words).map((c) => c.name);
    const first = numbers.find((name) => name !== table.target);
    if (!first)
      throw new Error(`${table.name} has no column of numbers beside “${table.target}” to look along.`);
    const pick = (id, label, list, chosen) => {
      const select = el("select", { id });
      options(select, list, chosen);
      select.addEventListener("change", () => this.chosen());
      return el("label", {}, `${label} `, select);
    };
    const pairs = numbers.map((name) => [name, name]);
    const second = table.model?.length === 2 ? numbers.filter((name) => name !== table.target)[1] : "";
    const target = table.model ? [[table.target, table.target]] : names.map((name) => [name, name]);
    $("columns").replaceChildren(
      el("strong", {}, table.name),
      pick("col-x", "along", pairs, first),
      pick("col-x2", "and", [["", "nothing else"], ...pairs], second),
      pick("col-y", "learn", target, table.target),
    );
    $("columns").hidden = false;
    const held = SCENES.map((s) => [s.id, s.title]);
    options($("scene"), [["table", table.name], ...held], "table");
    this.chosen();
  }

  chosen() {
    const x = $("col-x").value,
      x2 = $("col-x2").value,
      y = $("col-y").value;
    if (x === y || x2 === y || x === x2)
      return this.say(`“${x === y || x2 === y ? y : x}” is chosen twice: each column can be one thing.`);
    try {
      if (this.state) this.remember();
      this.open(this.beside(tableScene(this.table, x2 ? [x, x2] : [x], y, this.library.here ? 2000 : MOST)));
      this.say("");
    } catch (error) {
      this.say(error.message);
    }
  }

  /** Of an opened model: its prediction, and a process with its numbers beside it. */
  beside(scene) {
    const { opened, table } = this;
    if (!opened?.model) return scene;
    const given = opened.scene;
    scene.text = `The model of ${table.name}, along ${scene.names.x.join(" and ")}${table.model.length > scene.dims || opened.columns > scene.dims ? ", other columns as is typical" : ""}. ${scene.text}`;
    scene.tries = ["The opened model stays as it was learned; the process beside it can be moved."];
    if (given && table.model.length === scene.dims) {
      scene.kernel = structuredClone(given.kernel);
      scene.mean = { ...given.mean };
      if (given.noise) scene.likelihood.gaussian.noise = rounded(given.noise);
      scene.ways = [
        newWay({ likelihood: given.likelihood }),
        newWay({ likelihood: given.likelihood, method: "model" }),
      ];
    } else {
      scene.text += " Beside it, a process of these columns alone.";
      scene.ways = [{ ...scene.ways[0], method: "model" }, scene.ways[0]];
    }
    return scene;
  }

  modelColumns() {
    const names = this.table.columns.map((c) => c.name);
    return this.state.names.x.map((x) => this.table.model[names.indexOf(x)]);
  }

  // The library. -------------------------------------------------------------------------------------------

  met(hello) {
    if (hello?.table) {
      this.opened = { model: hello.table.model, scene: hello.scene, columns: hello.table.columns_of_model };
      try {
        this.hold(hello.table);
      } catch (error) {
        this.say(error.message);
      }
    }
    this.status();
    this.change();
  }

  status() {
    const { library } = this;
    const said = {
      none: "in the browser alone",
      connecting: "looking for the library …",
      here: `with gramian ${library.version}`,
      gone: "the library has gone: start gramian explore again",
    };
    $("status").textContent = said[library.state];
    $("foot").textContent = library.here
      ? "Small problems are solved in this page by the library’s formulas, larger ones by the library. Nothing leaves this machine."
      : "This page solves small problems by itself, by the formulas of the library gramian, and loads nothing from anywhere. What needs the library says so.";
    document.documentElement.dataset.state = library.state;
  }

  ask(key, message) {
    return this.library.ask(key, message);
  }

  problem() {
    const { dims, kernel, mean, likelihood, X, y } = this.state;
    return { dims, kernel: kernel.text ? { opened: true } : kernel, mean, likelihood, X, y };
  }

  key(way) {
    return JSON.stringify([this.problem(), way, this.state.view]);
  }

  pointsKey() {
    return JSON.stringify([this.state.X, this.state.y]);
  }

  async optimise() {
    const { state } = this,
      way = state.ways[0],
      button = $("optimise");
    if (button.dataset.busy) return this.library.stop();
    if (!state.X.length) return this.say("There are no points yet. Click into the picture to add some.");
    const target = state.ways.find((w) => w.method !== "deep" && w.method !== "model") ?? way;
    const here = !needsLibrary(state, target);
    if (!here && !this.library.here) return this.say(`${needsLibrary(state, target)} needs the library.`);
    this.remember();
    this.say("");
    button.dataset.busy = "yes";
    button.textContent = this.library.here ? "Stop" : "Optimising …";
    const before = this.panels[state.ways.indexOf(target)]?.evidence;
    try {
      if (this.library.here) await this.byLibrary(target);
      else await this.byClimbing(target);
      this.tell = `Optimised: log evidence from ${short(before, 4)} to`;
    } catch (error) {
      this.say(error.message);
    }
    delete button.dataset.busy;
    button.textContent = "Optimise";
    this.change();
  }

  /** Step by step, so that one sees it climb. */
  async byClimbing(way) {
    const { state } = this;
    for (const step of climb(state, way)) {
      if (this.state !== state) return;
      if (step.done) this.round(state);
      this.controls.sync();
      this.change();
      await new Promise((go) => setTimeout(go, 30));
    }
    this.round(state);
    this.controls.sync();
  }

  round(state) {
    for (const t of state.kernel.terms ?? []) {
      if (t.scale !== null) t.scale = rounded(t.scale);
      for (const f of t.factors)
        for (const [key, v] of Object.entries(f.values))
          f.values[key] = Array.isArray(v) ? v.map((w) => rounded(w)) : rounded(v);
    }
    for (const own of Object.values(state.likelihood))
      for (const key of Object.keys(own)) if (key !== "held") own[key] = rounded(own[key]);
    state.mean.value = rounded(state.mean.value);
  }

  async byLibrary(way) {
    const { state } = this;
    const found = await this.ask("optimise", { ask: "optimise", problem: this.problem(), way });
    if (this.state !== state) return;
    const kernel = structuredClone(state.kernel);
    if (found.kernel.terms && kernel.terms) {
      const on = kernel.terms.filter((t) => t.on !== false);
      found.kernel.terms.forEach((t, k) => {
        on[k].scale = t.scale;
        on[k].factors.forEach((f, j) => (f.values = t.factors[j].values));
      });
    }
    const values = {
      kernel,
      likelihood: { ...state.likelihood[way.likelihood], ...found.likelihood },
      mean: found.mean,
    };
    await this.glide(state, way, values);
    if (found.note) this.say(found.note);
  }

  /** From the present numbers to those that were found, over a third of a second. */
  async glide(state, way, to) {
    const from = {
      kernel: structuredClone(state.kernel),
      likelihood: { ...state.likelihood[way.likelihood] },
      mean: state.mean.value,
    };
    const mixed = (a, b, t) => {
      if (Array.isArray(a) && typeof a[0] === "number") return a.map((v, k) => mixed(v, b[k], t));
      return t >= 1
        ? b
        : a > 0 && b > 0
          ? Math.exp((1 - t) * Math.log(a) + t * Math.log(b))
          : a + t * (b - a);
    };
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches,
      began = performance.now();
    for (let t = still ? 1 : 0; ; t = Math.min(1, (performance.now() - began) / 350)) {
      if (this.state !== state) return;
      (state.kernel.terms ?? []).forEach((term, k) => {
        const a = from.kernel.terms[k],
          b = to.kernel.terms[k];
        if (term.scale !== null) term.scale = mixed(a.scale, b.scale, t);
        term.factors.forEach((f, j) => {
          for (const key of Object.keys(f.values))
            f.values[key] = mixed(a.factors[j].values[key], b.factors[j].values[key], t);
        });
      });
      for (const key of Object.keys(from.likelihood))
        if (key !== "held")
          state.likelihood[way.likelihood][key] = mixed(from.likelihood[key], to.likelihood[key], t);
      state.mean.value = from.mean + t * (to.mean - from.mean);
      if (t >= 1) state.mean.value = to.mean;
      this.controls.sync();
      this.change();
      if (t >= 1) return;
      await new Promise((go) => requestAnimationFrame(go));
    }
  }

  // What is shown. -----------------------------------------------------------------------------------------

  open(state) {
    this.state = state;
    this.ranges.clear();
    $("scene").value = state.id;
    $("title").textContent = state.title;
    $("text").textContent = state.text;
    $("tries").replaceChildren(...state.tries.map((t) => el("li", {}, t)));
    $("presets").hidden = !state.bishop;
    if (state.bishop) {
      $("presets").replaceChildren(
        ...BISHOP.map((theta) =>
          el(
            "button",
            {
              type: "button",
              onclick: () => {
                this.remember();
                state.kernel = bishopKernel(theta);
                this.structure();
              },
            },
            `(${theta.join(", ")})`,
          ),
        ),
      );
    }
    this.newValue.value =
      state.dims > 1 && this.family !== "binary"
        ? rounded((state.view.y[0] + 3 * state.view.y[1]) / 4, 3)
        : 1;
    $("newvalue-box").hidden = state.dims === 1;
    if (state.dims > 1) {
      const made =
        this.family === "binary"
          ? el(
              "select",
              {
                "aria-label": "Class of new points",
                onchange: (event) => (this.newValue.value = Number(event.target.value)),
              },
              ...[1, 0].map((v) => el("option", { value: String(v) }, this.className(v))),
            )
          : slider(state, {
              holder: this.newValue,
              key: "value",
              label: "",
              linear: state.view.y,
              changed: () => {},
            }).node;
      $("newvalue").replaceChildren(made);
    }
    this.structure();
  }

  className(v) {
    return this.state.words?.[v] ?? `class ${v}`;
  }

  yName() {
    const { names } = this.state;
    if (this.family === "binary") return `probability of ${this.className(1)}`;
    return names.y;
  }

  /** What a point is called, for people who cannot see it. */
  label() {
    const { state } = this,
      { X, y } = state,
      binary = this.family === "binary";
    const where = (i) => X[i].map((v, c) => `${state.names.x[c]} ${short(v)}`).join(", ");
    return {
      binary,
      of: (i) =>
        `Point ${i + 1}: ${where(i)}, ${binary ? this.className(y[i]) : `${state.names.y} ${short(y[i])}`}`,
    };
  }

  /** Something was added, taken away or exchanged. */
  structure() {
    const { state } = this;
    if (this.grouped !== state.dims) {
      this.grouped = state.dims;
      $("covariance").replaceChildren();
      this.covariancePlot = new Heat($("covariance"), { title: "Covariance" });
      $("prior").replaceChildren();
      this.priorPlot =
        state.dims === 1
          ? new Plot($("prior"), { title: "Draws from the prior", height: 230 })
          : new Heat($("prior"), { title: "A draw from the prior" });
      $("prior").classList.toggle("square", state.dims > 1);
    }
    this.makeGrid();
    const old = this.panels;
    this.panels = state.ways.map((way, k) => {
      const panel = new Panel(this, way, k);
      if (old[k]?.way === way && way.method === "deep")
        [panel.answer, panel.seen] = [old[k].answer, old[k].seen];
      return panel;
    });
    $("panels").replaceChildren(...this.panels.map((p) => p.node));
    $("compare").disabled = state.ways.length >= 3;
    this.controls.build(state);
    this.change();
  }

  makeGrid() {
    const { dims, view } = this.state;
    const line = ([a, b], n) => Array.from({ length: n }, (_, i) => a + ((b - a) * i) / (n - 1));
    if (dims === 1) {
      const count = this.state.ways.length > 1 ? NARROW : GRID; // pictures side by side are narrower
      const points = Float64Array.from(line(view.x, count));
      this.grid = { points, count, rows: Array.from(points, (v) => [v]) };
    } else {
      const make = (n) => {
        const rows = line(view.x2, n).flatMap((b) => line(view.x, n).map((a) => [a, b]));
        return { points: Float64Array.from(rows.flat()), count: n * n, rows, across: n };
      };
      this.grid = make(SIDE);
      this.coarse = make(COARSE);
    }
  }

  /** White numbers behind the draws, turning slowly where draws move (Hennig 2013). */
  get white() {
    const count = this.state.dims > 1 ? COARSE * COARSE : this.grid.count,
      c = Math.cos(this.turn),
      s = Math.sin(this.turn);
    return this.seeds[0].map((a, k) => {
      const b = this.seeds[1][k],
        out = new Float64Array(count);
      for (let i = 0; i < count; i++) out[i] = c * a[i] + s * b[i];
      return out;
    });
  }

  /** Ends of a colour scale that do not jump at every touch: they grow at once, and shrink when half is empty. */
  steady(key, values, floor = null) {
    let low = Infinity,
      high = -Infinity;
    for (const v of values) {
      if (v < low) low = v;
      if (v > high) high = v;
    }
    if (floor !== null) low = floor;
    if (!(high > low)) high = low + 1e-9 + Math.abs(low) * 1e-6;
    const [a, b] = this.ranges.get(key) ?? [Infinity, -Infinity];
    const keep = low >= a && high <= b && high - low > 0.5 * (b - a);
    const found = keep ? [a, b] : [rounded(low, 3), rounded(high, 3)];
    this.ranges.set(key, found);
    return found;
  }

  change() {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      this.frame();
    });
  }

  frame() {
    const start = performance.now();
    if (this.animated) this.turn += 0.012;
    const { state } = this,
      height = state.ways.length === 1 ? (innerWidth < 700 ? 290 : 400) : 290;
    for (const panel of this.panels) panel.update(height);
    this.evidence();
    this.below();
    performance.measure("frame", { start, end: performance.now() });
    if (performance.getEntriesByName("frame").length > 600) performance.clearMeasures("frame");
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.calm(), CALM);
    if (this.animated) this.change();
  }

  evidence() {
    const first = this.panels.find((p) => p.evidence !== null && p.evidence !== undefined),
      numbers = first?.parts;
    $("value").textContent = numbers ? minus(numbers.evidence.toFixed(2)) : "–";
    $("of").textContent = this.panels.length > 1 ? "log evidence, first picture" : "log evidence";
    $("kind").textContent = numbers
      ? numbers.kind
      : this.state.X.length
        ? ""
        : "no points yet: this is the prior";
    $("parts").textContent =
      numbers && numbers.fit !== undefined
        ? `= fit ${minus(numbers.fit.toFixed(2))} + complexity ${minus(numbers.complexity.toFixed(2))}`
        : "";
    const value = numbers ? String(numbers.evidence) : "";
    if (value !== $("evidence").dataset.value) $("agrees").textContent = "";
    $("evidence").dataset.value = value;
  }

  /** Prior draws, covariance, formula: what depends on the kernel. */
  below() {
    const { state } = this,
      { kernel, dims, mean } = state,
      can = known(kernel) && !kernel.text;
    const key = JSON.stringify([
      kernel,
      mean,
      state.view,
      dims,
      $("prior").clientWidth,
      this.turn,
      state.ways[0].likelihood,
    ]);
    const own = LIKELIHOODS[state.ways[0].likelihood];
    $("prior-card").hidden = !can;
    $("covariance-card").hidden = !can;
    if (!can) {
      $("formula").replaceChildren(el("code", {}, kernel.text ?? ""));
      return;
    }
    const before = prior(kernel, dims, mean.value);
    if (key !== this.priorKey) {
      this.priorKey = key;
      $("formula").replaceChildren(...formula(kernel, dims), el("code", {}, ...[kernelText(kernel)]));
      try {
        this.showPrior(before, own);
      } catch {
        this.priorKey = "";
      }
    }
    const after =
      this.covarianceOf === "post" && state.X.length ? this.panels.find((p) => p.post)?.post : null;
    if (!after && this.covarianceKey === `${key}prior`) return;
    this.covarianceKey = after ? "" : `${key}prior`;
    this.showCovariance(after ?? before, Boolean(after));
  }

  showPrior(before, own) {
    const { state } = this,
      { dims, view, mean } = state;
    if (dims === 1) {
      const { points, count } = this.grid,
        { variance } = before.moments(points, count),
        sd = variance.map(Math.sqrt);
      const draws = drawn(before.covariance(points, count), count, this.white).map((f) =>
        Array.from(f, (v) => own.link(v + mean.value)),
      );
      const ends = [-2, 2].map((z) => Array.from(sd, (s) => own.link(mean.value + z * s)));
      const top = Math.max(...sd),
        y = own.family === "real" ? [mean.value - 3 * top, mean.value + 3 * top] : view.y;
      const used =
        top > 0 && own.family === "real"
          ? [Math.min(y[0], mean.value - 1e-9), Math.max(y[1], mean.value + 1e-9)]
          : view.y;
      this.priorPlot.fit(
        { x: view.x, y: used.map((v) => rounded(v, 3)) },
        { x: state.names.x[0], y: this.yName() },
      );
      this.priorPlot.show({ grid: points, low: ends[0], high: ends[1], draws });
    } else {
      const { points, count } = this.coarse;
      const [f] = drawn(before.covariance(points, count), count, this.white.slice(0, 1)),
        values = Array.from(f, (v) => own.link(v + mean.value));
      this.priorPlot.fit(view, { x: state.names.x[0], y: state.names.x[1] });
      const [low, high] = own.family === "binary" ? [0, 1] : this.steady("prior", values);
      this.priorPlot.show({ values, across: COARSE, rows: COARSE, low, high });
    }
    $("prior-title").textContent = dims === 1 ? "Prior: draws and ±2 standard deviations" : "Prior: a draw";
  }

  showCovariance(process, after) {
    const { state } = this,
      { dims, view, kernel } = state,
      plot = this.covariancePlot;
    let values, across, frame, names;
    if (dims === 1) {
      const points = Float64Array.from(
        { length: PICTURE },
        (_, i) => view.x[0] + ((view.x[1] - view.x[0]) * i) / (PICTURE - 1),
      );
      [values, across, frame] = [process.covariance(points, PICTURE), PICTURE, { x: view.x, x2: view.x }];
      names = { x: state.names.x[0], y: `${state.names.x[0]}′` };
      $("covariance-title").textContent = "Covariance of f(x) and f(x′)";
    } else {
      const { points, count } = this.coarse,
        centre = Float64Array.from([(view.x[0] + view.x[1]) / 2, (view.x2[0] + view.x2[1]) / 2]);
      if (after) {
        const all = process.covariance(Float64Array.from([...points, ...centre]), count + 1);
        values = all.slice(count * (count + 1), count * (count + 1) + count);
      } else values = cross(kernel, points, count, centre, 1, 2);
      [across, frame, names] = [COARSE, view, { x: state.names.x[0], y: state.names.x[1] }];
      $("covariance-title").textContent = "Covariance with the centre";
    }
    const [low, high] = this.steady(after ? "after" : "before", values);
    plot.fit(frame, names);
    plot.show({ values, across, rows: across, low, high });
    plot.title(
      `${$("covariance-title").textContent}, ${after ? "after" : "before"} data, from ${short(low)} to ${short(high)}`,
    );
  }

  /** When nothing has moved for a while: code, table, words for screen readers, and what the library says. */
  calm() {
    const { state } = this;
    $("code").textContent = python(
      state,
      state.ways.filter((w) => w.method !== "model"),
      state.view,
    );
    this.pointsTable();
    const value = $("evidence").dataset.value;
    const said = value
      ? `${this.tell ?? "Log evidence"} ${short(Number(value), 4)}`
      : `${state.X.length} points`;
    this.tell = null;
    if (said !== $("live").textContent) $("live").textContent = said;
    const panel = this.panels.find((p) => p.post && p.evidence !== null && p.evidence !== undefined);
    if (!panel || !this.library.here || $("optimise").dataset.busy) return;
    const key = this.key(panel.way);
    this.ask("check", { ask: "evidence", problem: this.problem(), way: panel.way }).then(
      (answer) => {
        if (key !== this.key(panel.way)) return;
        const off = Math.abs(answer.evidence - panel.evidence) / (1 + Math.abs(answer.evidence));
        $("agrees").textContent =
          off < 1e-6 ? "✓ the library agrees" : `the library says ${minus(answer.evidence.toFixed(4))}`;
      },
      () => {},
    );
  }

  pointsTable() {
    const { state } = this,
      most = 60;
    if (!$("points-card").open || $("points").contains(document.activeElement)) {
      $("points-card").ontoggle = () => this.pointsTable();
      return;
    }
    const cell = (label, get, set) => {
      const input = el("input", { type: "number", step: "any", "aria-label": label });
      input.value = String(get());
      input.addEventListener("change", () => {
        if (Number.isFinite(input.valueAsNumber)) {
          this.remember();
          set(input.valueAsNumber);
          this.change();
        }
      });
      return el("td", {}, input);
    };
    const rows = state.X.slice(0, most).map((x, i) =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }, String(i + 1)),
        ...x.map((_, c) =>
          cell(
            `${state.names.x[c]} of point ${i + 1}`,
            () => state.X[i][c],
            (v) => (state.X[i][c] = v),
          ),
        ),
        cell(
          `${state.names.y} of point ${i + 1}`,
          () => state.y[i],
          (v) => (state.y[i] = this.fits(v)),
        ),
        el(
          "td",
          {},
          el(
            "button",
            {
              type: "button",
              class: "small",
              "aria-label": `Remove point ${i + 1}`,
              onclick: () => (this.removePoint(i), document.activeElement.blur()),
            },
            "Remove",
          ),
        ),
      ),
    );
    const add = el(
      "button",
      {
        type: "button",
        onclick: () => {
          const { view } = state,
            x = (view.x[0] + view.x[1]) / 2;
          this.add(x, state.dims === 1 ? (view.y[0] + view.y[1]) / 2 : (view.x2[0] + view.x2[1]) / 2);
          document.activeElement.blur();
        },
      },
      "Add a point",
    );
    const head = el(
      "tr",
      {},
      ...["", ...state.names.x, state.names.y, ""].map((t) => el("th", { scope: "col" }, t)),
    );
    $("points").replaceChildren(
      el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)),
      state.X.length > most ? el("p", { class: "faint" }, `The first ${most} of ${state.X.length}.`) : "",
      add,
    );
  }
}

/** As the library prints it. */
function kernelText(kernel) {
  const number = (v) => (Array.isArray(v) ? `[${v.map((w) => short(w)).join(", ")}]` : short(v));
  return kernel.terms
    .filter((t) => t.on !== false)
    .map((t) => {
      const product = t.factors
        .map((f) => `${f.name}(${Object.values(f.values).map(number).join(", ")})`)
        .join(" * ");
      return t.scale === null
        ? product
        : `${number(t.scale)} * ${t.factors.length > 1 ? `(${product})` : product}`;
    })
    .join(" + ");
}

new App();
document.documentElement.dataset.ready = "yes";
