/* The kernel builder: a card for each term, a slider for each number. Sliders are logarithmic; the number beside
   one can be typed; the lock holds it when Optimise is pressed. */

import { el, options, rounded, short, svg } from "./dom.mjs";
import { FACTORS, factor, term } from "./math/kernels.mjs";
import { LIKELIHOODS } from "./math/likelihoods.mjs";

const STEPS = 1000;
let unique = 0;

/** From and to which value a slider goes. */
function reach(kind, state) {
  const across = state.view.x[1] - state.view.x[0],
    family = LIKELIHOODS[state.ways[0].likelihood].family;
  const up = family === "real" ? (state.view.y[1] - state.view.y[0]) / 4 : 1;
  return {
    length: [across / 200, across * 3],
    shape: [0.05, 50],
    slope: [1e-3 * (up / across) ** 2, 1e3 * Math.max(1, (up / across) ** 2)],
    level: family === "real" ? [up * up * 1e-5, up * up * 20] : [0.01, 1000],
    spread: [up * 1e-3, up * 3],
    degrees: [1, 100],
  }[kind];
}

/** A slider for holder[key] (of column c), with its number and its lock. */
export function slider(state, { holder, key, c, label, kind, held, hold, changed, linear = null }) {
  const id = `s${unique++}`,
    [low, high] = linear ?? reach(kind, state);
  const get = () => (c === undefined ? holder[key] : holder[key][c]);
  const set = (v) => (c === undefined ? (holder[key] = v) : (holder[key][c] = v));
  const share = (v) => (linear ? (v - low) / (high - low) : Math.log(v / low) / Math.log(high / low));
  const value = (t) => (linear ? low + t * (high - low) : low * (high / low) ** t);
  const ends = { min: 0, max: STEPS, step: 1 };
  const range = el("input", { type: "range", id, ...ends });
  const number = el("input", {
    type: "number",
    step: "any",
    "aria-label": `${label}, as a number`,
    ...(linear ? {} : { min: "0" }),
  });
  const lock = hold
    ? el("button", { type: "button", class: "small", title: "Hold when optimising" })
    : el("span");
  const sync = () => {
    const v = get();
    range.value = String(Math.round(STEPS * Math.max(0, Math.min(1, share(v)))));
    range.setAttribute("aria-valuetext", short(v, 4));
    if (document.activeElement !== number) number.value = short(v, 4);
    if (hold) {
      lock.setAttribute("aria-pressed", String(held()));
      lock.setAttribute("aria-label", `${held() ? "Held" : "Free"}: ${label}`);
      lock.replaceChildren(padlock(held()));
    }
  };
  range.addEventListener("input", () => {
    set(rounded(value(range.value / STEPS), 3));
    sync();
    changed();
  });
  number.addEventListener("change", () => {
    const v = Number(number.value);
    if (Number.isFinite(v) && (linear || v >= 1e-12) && Math.abs(v) <= 1e12) set(v);
    number.blur();
    sync();
    changed();
  });
  if (hold) lock.addEventListener("click", () => (hold(!held()), sync(), changed()));
  sync();
  const node = el("div", { class: "slider" }, el("label", { for: id }, label), range, number, lock);
  return { node, sync };
}

function padlock(closed) {
  const arc = closed ? "M4 7V5a3 3 0 0 1 6 0v2" : "M4 7V4.5a3 3 0 0 1 6-.8";
  return svg(
    "svg",
    { viewBox: "0 0 14 14", "aria-hidden": "true" },
    svg("rect", { x: 2.5, y: 7, width: 9, height: 6, rx: 1.2, ...(closed ? { fill: "currentColor" } : {}) }),
    svg("path", { d: arc }),
  );
}

const listed = (list, name) => ({
  held: () => list.includes(name),
  hold: (on) => (on ? list.push(name) : list.splice(list.indexOf(name), 1)),
});

export class Controls {
  constructor({ kernel, addTerm, observed, changed, rebuilt }) {
    Object.assign(this, { kernel, observed, changed, rebuilt });
    this.sliders = [];
    options(
      addTerm,
      [
        ["", "choose a part …"],
        ...Object.entries(FACTORS).map(([name, own]) => [name, `${name}: ${own.says}`]),
      ],
      "",
    );
    addTerm.addEventListener("change", () => {
      if (!addTerm.value) return;
      if (this.state.kernel.text) this.state.kernel = { terms: [] };
      this.state.kernel.terms.push(term([this.fresh(addTerm.value)], this.level()));
      addTerm.value = "";
      rebuilt();
    });
  }

  /** A scale that can be seen in this view. */
  level() {
    const { view, ways } = this.state,
      up = (view.y[1] - view.y[0]) / 6;
    return LIKELIHOODS[ways[0].likelihood].family === "real" ? rounded(up * up, 2) : 1;
  }

  /** A factor whose lengths suit the view. */
  fresh(name) {
    const { view, dims } = this.state,
      made = factor(name);
    for (const [key, param] of Object.entries(FACTORS[name].params)) {
      if (param.kind === "length") {
        const start = rounded(((view.x[1] - view.x[0]) * (key === "period" ? 2 : 1)) / 10, 2);
        made.values[key] = param.ard && dims > 1 ? Array(dims).fill(start) : start;
      } else if (param.kind === "level") made.values[key] = this.level();
    }
    return made;
  }

  /** Everything anew, for a state. */
  build(state) {
    this.state = state;
    this.sliders = [];
    const { kernel } = state;
    if (kernel.text) {
      this.kernel.replaceChildren(
        el(
          "div",
          { class: "term" },
          el("code", {}, kernel.text),
          el(
            "p",
            { class: "faint" },
            "The kernel of the model, as it was learned; the page holds it. Add a term to build another.",
          ),
        ),
      );
    } else this.kernel.replaceChildren(...kernel.terms.map((t, k) => this.term(t, k)));
    this.observed.replaceChildren(this.likelihoods());
  }

  add(given) {
    const made = slider(this.state, { ...given, changed: this.changed });
    this.sliders.push(made);
    return made.node;
  }

  term(t, k) {
    const { state } = this,
      name = t.factors.map((f) => f.name).join(" × ");
    const box = el("input", {
      type: "checkbox",
      checked: t.on !== false,
      onchange: () => ((t.on = box.checked), this.rebuilt()),
    });
    const remove = el(
      "button",
      {
        type: "button",
        class: "small",
        "aria-label": `Remove the term ${name}`,
        onclick: () => (state.kernel.terms.splice(k, 1), this.rebuilt()),
      },
      "Remove",
    );
    const parts = [el("div", { class: "head" }, el("label", {}, box, name), remove)];
    if (t.on !== false) {
      if (t.scale !== null)
        parts.push(
          this.add({
            holder: t,
            key: "scale",
            label: "scale (a variance)",
            kind: "level",
            held: () => t.held,
            hold: (on) => (t.held = on),
          }),
        );
      t.factors.forEach((f, j) => parts.push(this.factor(t, f, j)));
      const more = el("select", { "aria-label": `Multiply ${name} by` });
      options(more, [["", "× multiply by …"], ...Object.keys(FACTORS).map((n) => [n, `× ${n}`])], "");
      more.addEventListener("change", () => {
        if (t.scale === null) t.scale = 1;
        t.factors.push(this.fresh(more.value));
        this.rebuilt();
      });
      if (t.factors.length < 4) parts.push(more);
    }
    return el(
      "fieldset",
      { class: t.on === false ? "term off" : "term" },
      el("legend", { class: "unseen" }, `Term ${k + 1}`),
      ...parts,
    );
  }

  factor(t, f, j) {
    const which = el("select", { "aria-label": "Kind of kernel" });
    options(
      which,
      Object.entries(FACTORS).map(([name, own]) => [name, `${name}: ${own.says}`]),
      f.name,
    );
    which.addEventListener("change", () => {
      const made = this.fresh(which.value);
      for (const key of Object.keys(made.values))
        if (key in f.values)
          [made.values[key], made.held] = [
            f.values[key],
            f.held.includes(key) ? [...made.held, key] : made.held,
          ];
      t.factors[j] = made;
      if (t.factors.length === 1) t.scale = FACTORS[made.name].own ? null : (t.scale ?? this.level());
      this.rebuilt();
    });
    const remove = el(
      "button",
      {
        type: "button",
        class: "small",
        "aria-label": `Remove the factor ${f.name}`,
        onclick: () => (t.factors.splice(j, 1), this.rebuilt()),
      },
      "×",
    );
    const parts = [el("div", { class: "which" }, which, t.factors.length > 1 ? remove : null)];
    for (const [key, param] of Object.entries(FACTORS[f.name].params)) {
      const value = f.values[key],
        own = { holder: f.values, key, kind: param.kind, ...listed(f.held, key) };
      if (Array.isArray(value))
        value.forEach((_, c) =>
          parts.push(this.add({ ...own, c, label: `${param.says} of ${this.state.names.x[c]}` })),
        );
      else parts.push(this.add({ ...own, label: param.says }));
    }
    return el("div", { class: "factor" }, ...parts);
  }

  likelihoods() {
    const { state } = this,
      used = [...new Set(state.ways.filter((w) => w.method !== "model").map((w) => w.likelihood))];
    const parts = used.flatMap((name) => {
      const own = state.likelihood[name];
      return Object.entries(LIKELIHOODS[name].params).map(([key, param]) =>
        this.add({ holder: own, key, label: param.says, kind: param.kind, ...listed(own.held, key) }),
      );
    });
    const [low, high] = LIKELIHOODS[state.ways[0].likelihood].family === "real" ? state.view.y : [-4, 4];
    parts.push(
      this.add({
        holder: state.mean,
        key: "value",
        label: "mean (a constant)",
        linear: [low, high],
        held: () => state.mean.held,
        hold: (on) => (state.mean.held = on),
      }),
    );
    return el("fieldset", { class: "term" }, el("legend", { class: "unseen" }, "Noise and mean"), ...parts);
  }

  sync() {
    for (const one of this.sliders) one.sync();
  }
}
