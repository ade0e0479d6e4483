/* A picture of numbers over two axes: colours on a canvas, contours, axes and points above it in SVG. The
   colours rise evenly in lightness, so that the picture can be read in grey, with any colour vision. */

import { svg, tickText, ticks } from "./dom.mjs";
import { keyed, marker } from "./plot.mjs";

const LEFT = 40,
  RIGHT = 8,
  TOP = 8,
  BOTTOM = 66,
  BAR = 10,
  FINE = 4;
// cividis (Nunez, Anderton and Renslow 2018), and a ladder from light to dark for what is not known
export const LEVELS = [
  "#00224e",
  "#123570",
  "#3b496c",
  "#575d6d",
  "#707173",
  "#8a8678",
  "#a59c74",
  "#c3b369",
  "#e1cc55",
  "#fee838",
];
export const DOUBT = ["#0b2e4f", "#1f5a86", "#4a8ab3", "#86b5d2", "#bfd8e6", "#f1f6f8"].reverse();

function table(stops) {
  const parts = stops.map((s) => [1, 3, 5].map((k) => parseInt(s.slice(k, k + 2), 16))),
    out = new Uint8Array(256 * 3);
  for (let i = 0; i < 256; i++) {
    const t = (i / 255) * (parts.length - 1),
      k = Math.min(Math.floor(t), parts.length - 2),
      u = t - k;
    for (let c = 0; c < 3; c++) out[3 * i + c] = Math.round(parts[k][c] * (1 - u) + parts[k + 1][c] * u);
  }
  return out;
}
const TABLES = new Map([LEVELS, DOUBT].map((stops) => [stops, table(stops)]));

export class Heat {
  constructor(host, { title, actions = null, square = true }) {
    this.host = host;
    this.actions = actions;
    this.square = square;
    this.canvas = document.createElement("canvas");
    this.root = svg("svg", { class: "over", role: actions ? "group" : "img", "aria-label": title });
    this.lines = svg("g");
    this.axes = svg("g");
    this.dots = svg("g");
    this.bar = document.createElement("canvas");
    this.root.append(this.lines, this.axes, this.dots);
    host.replaceChildren(this.canvas, this.bar, this.root);
    if (actions) this.listen();
  }

  title(text) {
    this.root.setAttribute("aria-label", text);
  }

  fit(view, names) {
    const width = Math.max(this.host.clientWidth, 160),
      w = width - LEFT - RIGHT,
      h = Math.min(w, 420),
      height = h + TOP + BOTTOM;
    const key = JSON.stringify([width, view, names]);
    if (key === this.key) return;
    this.key = key;
    Object.assign(this, { w, h, width, height, view });
    this.root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.root.setAttribute("height", height);
    const [a, b] = view.x,
      [c, d] = view.x2;
    this.x = (v) => LEFT + (w * (v - a)) / (b - a);
    this.y = (v) => TOP + (h * (d - v)) / (d - c);
    this.unx = (p) => a + ((p - LEFT) * (b - a)) / w;
    this.uny = (p) => d - ((p - TOP) * (d - c)) / h;
    place(this.canvas, LEFT, TOP, w, h);
    place(this.bar, LEFT, TOP + h + 36, w, BAR);
    this.names = names;
    this.frame = null;
  }

  drawAxes(low, high) {
    const { w, h } = this,
      parts = [svg("rect", { class: "axis", x: LEFT, y: TOP, width: w, height: h })];
    const text = (x, y, said, anchor, kind = "") => {
      const node = svg("text", { x, y, "text-anchor": anchor, class: kind });
      node.textContent = said;
      parts.push(node);
    };
    for (const t of ticks(...this.view.x, w / 70)) text(this.x(t), TOP + h + 14, tickText(t), "middle");
    for (const t of ticks(...this.view.x2, h / 50)) text(LEFT - 5, this.y(t) + 4, tickText(t), "end");
    text(LEFT + w / 2, TOP + h + 29, this.names.x, "middle", "label");
    const up = svg("text", {
      class: "label",
      "text-anchor": "middle",
      transform: `translate(10 ${TOP + h / 2}) rotate(-90)`,
    });
    up.textContent = this.names.y;
    parts.push(up);
    const span = high - low || 1;
    for (const t of ticks(low, high, w / 75)) {
      const x = LEFT + (w * (t - low)) / span;
      parts.push(
        svg("line", { class: "axis", x1: x, x2: x, y1: TOP + h + 36 + BAR, y2: TOP + h + 39 + BAR }),
      );
      text(Math.min(Math.max(x, LEFT + 8), LEFT + w - 8), TOP + h + 39 + BAR + 12, tickText(t), "middle");
    }
    this.axes.replaceChildren(...parts);
  }

  /** values: (rows x across), row 0 at the bottom. */
  show({ values, across, rows, low, high, stops = LEVELS, levels = null, main = null, points = null }) {
    const colours = TABLES.get(stops),
      span = high - low || 1;
    const frame = `${this.key}${low}${high}`;
    if (frame !== this.frame) {
      this.drawAxes(low, high);
      paint(this.bar, 128, 1, (i) => i / 127, colours);
      this.frame = frame;
    }
    const W = across * FINE,
      H = rows * FINE;
    paint(
      this.canvas,
      W,
      H,
      (i, j) =>
        (between(values, across, rows, ((i + 0.5) / W) * (across - 1), (1 - (j + 0.5) / H) * (rows - 1)) -
          low) /
        span,
      colours,
    );
    const [a, b] = this.view.x,
      [c, d] = this.view.x2;
    const at = (i, j) => [this.x(a + ((b - a) * i) / (across - 1)), this.y(c + ((d - c) * j) / (rows - 1))];
    const inside = (v) => v > low + 1e-9 * span && v < high - 1e-9 * span;
    const all = (levels ?? ticks(low, high, 7)).filter(inside),
      parts = [];
    for (const level of all)
      parts.push(svg("path", { class: "contour", d: contour(values, across, rows, level, at) }));
    if (main !== null) {
      const line = contour(values, across, rows, main, at);
      parts.push(
        svg("path", { class: "contour over main", d: line }),
        svg("path", { class: "contour main", d: line }),
      );
    }
    this.lines.replaceChildren(...parts);
    if (points) this.place(points);
  }

  place({ X, y, label }) {
    const n = X.length,
      tag = this.actions ? { tabindex: 0, role: "button" } : {};
    while (this.dots.childElementCount > n) this.dots.lastChild.remove();
    while (this.dots.childElementCount < n) {
      this.dots.append(
        svg(
          "g",
          { class: "point on-map", ...tag },
          svg("circle", { class: "hit", r: 14 }),
          svg("path", { class: "dot" }),
        ),
      );
    }
    for (let i = 0; i < n; i++) {
      const dot = this.dots.children[i],
        zero = label.binary && y[i] < 0.5;
      dot.setAttribute("transform", `translate(${this.x(X[i][0]).toFixed(1)} ${this.y(X[i][1]).toFixed(1)})`);
      dot.classList.toggle("zero", zero);
      dot.lastChild.setAttribute("d", marker(zero, n > 80 ? 3 : 5));
      if (!label.binary && label.colour) {
        const k = Math.round(255 * Math.max(0, Math.min(1, label.colour(y[i])))),
          t = TABLES.get(LEVELS);
        dot.lastChild.style.fill = `rgb(${t[3 * k]} ${t[3 * k + 1]} ${t[3 * k + 2]})`;
      }
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
      root.setPointerCapture?.(event.pointerId);
      event.preventDefault();
    });
    root.addEventListener("pointermove", (event) => {
      if (dragged < 0) return;
      moved = true;
      actions.move(dragged, ...at(event));
    });
    root.addEventListener("pointerup", () => (dragged = -1));
    root.addEventListener("pointercancel", () => (dragged = -1));
    root.addEventListener("click", (event) => {
      const [x, y] = at(event),
        { view } = this;
      if (
        moved ||
        which(event.target) >= 0 ||
        x < view.x[0] ||
        x > view.x[1] ||
        y < view.x2[0] ||
        y > view.x2[1]
      )
        return;
      actions.add(x, y);
    });
    root.addEventListener("dblclick", (event) => {
      const i = which(event.target);
      if (i >= 0) actions.remove(i);
    });
    root.addEventListener("keydown", (event) => keyed(event, which(event.target), actions, this.view));
  }
}

function place(canvas, left, top, width, height) {
  Object.assign(canvas.style, {
    left: `${left}px`,
    top: `${top}px`,
    width: `${width}px`,
    height: `${height}px`,
  });
}

function paint(canvas, W, H, share, colours) {
  if (canvas.width !== W || canvas.height !== H) Object.assign(canvas, { width: W, height: H });
  const context = canvas.getContext("2d"),
    image = context.createImageData(W, H);
  for (let j = 0, at = 0; j < H; j++) {
    for (let i = 0; i < W; i++, at += 4) {
      const k = 3 * Math.max(0, Math.min(255, Math.round(255 * share(i, j))));
      image.data[at] = colours[k];
      image.data[at + 1] = colours[k + 1];
      image.data[at + 2] = colours[k + 2];
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
}

/** Between four neighbours. */
function between(values, across, rows, x, y) {
  const i = Math.min(Math.floor(x), across - 2),
    j = Math.min(Math.floor(y), rows - 2),
    u = x - i,
    v = y - j,
    at = j * across + i;
  return (
    (values[at] * (1 - u) + values[at + 1] * u) * (1 - v) +
    (values[at + across] * (1 - u) + values[at + across + 1] * u) * v
  );
}

/** The line where the values pass a level: each cell of the lattice by itself (marching squares). */
function contour(values, across, rows, level, at) {
  let d = "";
  const cross = (i, j, k, l) => {
    const a = values[j * across + i],
      b = values[l * across + k];
    if (a < level === b < level) return null;
    const t = (level - a) / (b - a);
    return at(i + t * (k - i), j + t * (l - j));
  };
  for (let j = 0; j < rows - 1; j++) {
    for (let i = 0; i < across - 1; i++) {
      const ends = [
        cross(i, j, i + 1, j),
        cross(i + 1, j, i + 1, j + 1),
        cross(i, j + 1, i + 1, j + 1),
        cross(i, j, i, j + 1),
      ].filter(Boolean);
      for (let k = 0; k + 1 < ends.length; k += 2) {
        d += `M${ends[k][0].toFixed(1)} ${ends[k][1].toFixed(1)}L${ends[k + 1][0].toFixed(1)} ${ends[k + 1][1].toFixed(1)}`;
      }
    }
  }
  return d;
}
