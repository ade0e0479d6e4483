/* A picture of functions of one input: bands, draws, mean and points, in SVG. Elements are made once and moved,
   so that a frame costs little. Points are buttons: they can be dragged, moved by arrows and deleted. */

import { svg, tickText, ticks } from "./dom.mjs";

const LEAST = 46, // on the left, where labels are short
  RIGHT = 12,
  TOP = 12,
  BOTTOM = 34;

export class Plot {
  /** actions: {add(x, y), move(i, x, y), remove(i), begin()}; none: a picture to look at. */
  constructor(host, { title, height = 300, actions = null }) {
    this.host = host;
    this.height = height;
    this.actions = actions;
    this.root = svg("svg", { role: actions ? "group" : "img", "aria-label": title });
    const id = `clip${Math.random().toString(36).slice(2)}`;
    this.clip = svg("rect");
    this.axes = svg("g");
    this.inside = svg("g", { "clip-path": `url(#${id})` });
    this.layers = {};
    for (const name of ["outer", "band", "edge", "draws", "mean", "half", "ticks"]) {
      this.layers[name] = name === "draws" || name === "ticks" ? svg("g") : svg("path", { class: name });
      this.inside.append(this.layers[name]);
    }
    this.dots = svg("g");
    this.root.append(svg("defs", {}, svg("clipPath", { id }, this.clip)), this.axes, this.inside, this.dots);
    host.replaceChildren(this.root);
    this.width = 0;
    if (actions) this.listen();
  }

  title(text) {
    this.root.setAttribute("aria-label", text);
  }

  /** The size of the host, and scales for this view. */
  fit(view, names) {
    const width = Math.max(this.host.clientWidth, 200),
      key = JSON.stringify([width, this.height, view, names]);
    if (key === this.key) return;
    this.key = key;
    this.width = width;
    this.view = view;
    this.root.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
    this.root.setAttribute("height", this.height);
    const [a, b] = view.x,
      [c, d] = view.y,
      h = this.height - TOP - BOTTOM,
      ups = ticks(c, d, h / 45),
      left = Math.max(LEAST, 25 + 7 * Math.max(...ups.map((t) => tickText(t).length))),
      w = width - left - RIGHT;
    this.left = left;
    this.x = (v) => left + (w * (v - a)) / (b - a);
    this.y = (v) => TOP + (h * (d - v)) / (d - c);
    this.unx = (p) => a + ((p - left) * (b - a)) / w;
    this.uny = (p) => d - ((p - TOP) * (d - c)) / h;
    for (const [k, v] of Object.entries({ x: left, y: TOP, width: w, height: h }))
      this.clip.setAttribute(k, v);
    const parts = [];
    for (const t of ticks(a, b, w / 80)) {
      parts.push(svg("line", { class: "grid", x1: this.x(t), x2: this.x(t), y1: TOP, y2: TOP + h }));
      const label = svg("text", { x: this.x(t), y: TOP + h + 15, "text-anchor": "middle" });
      label.textContent = tickText(t);
      parts.push(label);
    }
    for (const t of ups) {
      parts.push(svg("line", { class: "grid", x1: left, x2: left + w, y1: this.y(t), y2: this.y(t) }));
      const label = svg("text", { x: left - 7, y: this.y(t) + 4, "text-anchor": "end" });
      label.textContent = tickText(t);
      parts.push(label);
    }
    const across = svg("text", {
      class: "label",
      x: left + w / 2,
      y: this.height - 4,
      "text-anchor": "middle",
    });
    across.textContent = names.x;
    const up = svg("text", {
      class: "label",
      x: 0,
      y: 0,
      "text-anchor": "middle",
      transform: `translate(11 ${TOP + h / 2}) rotate(-90)`,
    });
    up.textContent = names.y;
    parts.push(svg("rect", { class: "axis", x: left, y: TOP, width: w, height: h }), across, up);
    this.axes.replaceChildren(...parts);
  }

  line(grid, values) {
    let d = "";
    for (let i = 0; i < values.length; i++) {
      const y = Math.max(-5000, Math.min(5000, this.y(values[i])));
      d += `${i ? "L" : "M"}${this.x(grid[i]).toFixed(1)} ${y.toFixed(1)}`;
    }
    return d;
  }

  area(grid, low, high) {
    const back = Array.from(grid).reverse(),
      top = Array.from(high).reverse();
    return `${this.line(grid, low)}L${this.line(back, top).slice(1)}Z`;
  }

  /** shown: {grid, mean, low, high, outer: [low, high], draws, inducing, half, points: {X, y, zero}} */
  show({ grid, mean, low, high, outer, draws = [], inducing = [], half = false, points = null }) {
    const { layers } = this,
      set = (name, d) => layers[name].setAttribute("d", d);
    set("outer", outer ? this.area(grid, ...outer) : "");
    set("band", low ? this.area(grid, low, high) : "");
    set("edge", low ? this.line(grid, low) + this.line(grid, high) : "");
    set("mean", mean ? this.line(grid, mean) : "");
    set("half", half ? `M${this.left} ${this.y(0.5)}H${this.width - RIGHT}` : "");
    const lines = layers.draws;
    while (lines.childElementCount > draws.length) lines.lastChild.remove();
    while (lines.childElementCount < draws.length) lines.append(svg("path", { class: "draw" }));
    draws.forEach((f, i) => lines.children[i].setAttribute("d", this.line(grid, f)));
    const bottom = this.height - BOTTOM;
    layers.ticks.replaceChildren(
      ...Array.from(inducing, (z) =>
        svg("line", { class: "inducing", x1: this.x(z), x2: this.x(z), y1: bottom - 9, y2: bottom }),
      ),
    );
    if (points) this.place(points);
    else this.dots.replaceChildren();
  }

  place({ X, y, label }) {
    const n = X.length,
      tag = this.actions ? { tabindex: 0, role: "button" } : {};
    while (this.dots.childElementCount > n) this.dots.lastChild.remove();
    while (this.dots.childElementCount < n) {
      this.dots.append(
        svg(
          "g",
          { class: "point", ...tag },
          svg("circle", { class: "hit", r: 14 }),
          svg("path", { class: "dot" }),
        ),
      );
    }
    const size = n > 80 ? 3.2 : 5;
    for (let i = 0; i < n; i++) {
      const dot = this.dots.children[i],
        zero = label.binary && y[i] < 0.5;
      dot.setAttribute(
        "transform",
        `translate(${this.x(X[i][0]).toFixed(1)} ${Math.max(TOP, Math.min(this.height - BOTTOM, this.y(y[i]))).toFixed(1)})`,
      );
      dot.classList.toggle("zero", zero);
      dot.lastChild.setAttribute("d", marker(zero, size));
      if (this.actions) dot.setAttribute("aria-label", label.of(i));
    }
  }

  listen() {
    const { root, actions } = this;
    let dragged = -1,
      moved = false;
    const at = (event) => {
      const box = root.getBoundingClientRect();
      return [this.unx(event.clientX - box.left), this.uny(event.clientY - box.top)];
    };
    const which = (target) => [...this.dots.children].indexOf(target.closest(".point"));
    root.addEventListener("pointerdown", (event) => {
      moved = false;
      dragged = which(event.target);
      if (dragged < 0) return;
      actions.begin();
      this.dots.children[dragged].focus();
      this.dots.children[dragged].classList.add("dragged");
      root.setPointerCapture?.(event.pointerId);
      event.preventDefault();
    });
    root.addEventListener("pointermove", (event) => {
      if (dragged < 0) return;
      moved = true;
      actions.move(dragged, ...at(event));
    });
    const end = () => {
      if (dragged >= 0) this.dots.children[dragged]?.classList.remove("dragged");
      dragged = -1;
    };
    root.addEventListener("pointerup", end);
    root.addEventListener("pointercancel", end);
    root.addEventListener("click", (event) => {
      if (moved || which(event.target) >= 0) return;
      const [x, y] = at(event),
        { view } = this;
      if (x < view.x[0] || x > view.x[1] || y < view.y[0] || y > view.y[1]) return;
      actions.add(x, y);
    });
    root.addEventListener("dblclick", (event) => {
      const i = which(event.target);
      if (i >= 0) actions.remove(i);
    });
    root.addEventListener("keydown", (event) => keyed(event, which(event.target), actions, this.view));
  }
}

export const marker = (square, s) =>
  square ? `M${-s} ${-s}H${s}V${s}H${-s}Z` : `M${s} 0A${s} ${s} 0 1 1 ${-s} 0A${s} ${s} 0 1 1 ${s} 0Z`;

/** Arrows move a point by a hundredth of the view (with Shift a tenth), Delete takes it away. */
export function keyed(event, i, actions, view) {
  if (i < 0) return;
  const step = event.shiftKey ? 0.1 : 0.01,
    down = view.x2 ?? view.y;
  const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  if (by) {
    event.preventDefault();
    actions.nudge(i, by[0] * step * (view.x[1] - view.x[0]), by[1] * step * (down[1] - down[0]));
  } else if (event.key === "Delete" || event.key === "Backspace") {
    event.preventDefault();
    actions.remove(i);
  }
}
