/* The kernel as mathematics, in MathML, with its numbers in place. */

import { minus, short } from "./dom.mjs";
import { active } from "./math/kernels.mjs";

const MATHML = "http://www.w3.org/1998/Math/MathML";
const node = (tag, ...children) => {
  const made = document.createElementNS(MATHML, tag);
  made.append(...children);
  return made;
};
const row = (...parts) => node("mrow", ...parts);
const op = (text) => node("mo", text);
const id = (text) => node("mi", text);
const roman = (text) => {
  const made = node("mi", text);
  made.setAttribute("mathvariant", "normal");
  return made;
};
const num = (v) => {
  const text = short(v);
  if (!text.includes("e")) return node("mn", minus(text));
  const [a, b] = text.split("e");
  return row(node("mn", minus(a)), op("·"), node("msup", node("mn", "10"), node("mn", minus(b))));
};
const frac = (a, b) => node("mfrac", a, b);
const square = (a) => node("msup", a, node("mn", "2"));
const paren = (...parts) => row(op("("), ...parts, op(")"));
const prime = () => row(id("x"), op("′"));
const difference = () => row(id("x"), op("−"), prime());
const inner = (d) => (d === 1 ? row(id("x"), prime()) : row(node("msup", id("x"), op("⊤")), prime()));
const exp = (...parts) => row(roman("exp"), paren(...parts));

/** r of a factor, the distance in lengthscales, which a line below spells out; with a number where several are. */
const distance = (r) => (r.number ? node("msub", id("r"), node("mn", String(r.number))) : id("r"));
const root = (k) => node("msqrt", node("mn", String(k)));

const PARTS = {
  RBF: (f, d, r) =>
    d === 1
      ? exp(
          op("−"),
          frac(square(paren(difference())), row(node("mn", "2"), op("·"), square(num(f.values.lengthscale)))),
        )
      : exp(op("−"), frac(square(distance(r)), node("mn", "2"))),
  Matern12: (f, d, r) => exp(op("−"), distance(r)),
  Matern32: (f, d, r) =>
    row(paren(node("mn", "1"), op("+"), root(3), distance(r)), exp(op("−"), root(3), distance(r))),
  Matern52: (f, d, r) =>
    row(
      paren(
        node("mn", "1"),
        op("+"),
        root(5),
        distance(r),
        op("+"),
        frac(node("mn", "5"), node("mn", "3")),
        square(distance(r)),
      ),
      exp(op("−"), root(5), distance(r)),
    ),
  RationalQuadratic: (f, d, r) =>
    node(
      "msup",
      paren(
        node("mn", "1"),
        op("+"),
        frac(square(distance(r)), row(node("mn", "2"), op("·"), num(f.values.alpha))),
      ),
      row(op("−"), num(f.values.alpha)),
    ),
  Periodic: (f) =>
    exp(
      op("−"),
      frac(node("mn", "2"), square(num(f.values.lengthscale))),
      node("msup", roman("sin"), node("mn", "2")),
      frac(row(roman("π"), paren(difference())), num(f.values.period)),
    ),
  Cosine: (f) =>
    row(roman("cos"), frac(row(node("mn", "2"), roman("π"), paren(difference())), num(f.values.period))),
  Linear: (f, d) => row(num(f.values.variance), op("⋅"), inner(d)),
  Polynomial: (f, d) =>
    square(paren(num(f.values.variance), op("⋅"), inner(d), op("+"), num(f.values.offset))),
  Constant: (f) => num(f.values.variance),
  NeuralNetwork: () =>
    row(
      frac(node("mn", "2"), roman("π")),
      roman("arcsin"),
      frac(
        row(node("mn", "2"), id("s")),
        node(
          "msqrt",
          row(
            paren(node("mn", "1"), op("+"), node("mn", "2"), id("p")),
            paren(node("mn", "1"), op("+"), node("mn", "2"), id("q")),
          ),
        ),
      ),
    ),
  ArcCosine: () =>
    row(
      frac(node("msqrt", row(id("p"), id("q"))), roman("π")),
      paren(roman("sin"), id("φ"), op("+"), paren(roman("π"), op("−"), id("φ")), roman("cos"), id("φ")),
    ),
  Brownian: () => row(roman("min"), paren(op("|"), id("x"), op("|"), op(","), op("|"), prime(), op("|"))),
};

/** Whether the formula of a factor has an r in it. */
const far = (f, d) =>
  f.values.lengthscale !== undefined && f.name !== "Periodic" && (d > 1 || f.name !== "RBF");

/** What r is, for a factor. */
function spelled(f, d, r) {
  const l = f.values.lengthscale;
  if (d === 1) return row(distance(r), op("="), frac(row(op("|"), difference(), op("|")), num(l)));
  const sum = [0, 1].flatMap((j) => {
    const x = node("msub", id("x"), node("mn", String(j + 1))),
      z = node("msubsup", id("x"), node("mn", String(j + 1)), op("′"));
    const part = frac(square(paren(x, op("−"), z)), square(num(Array.isArray(l) ? l[j] : l)));
    return j ? [op("+"), part] : [part];
  });
  return row(square(distance(r)), op("="), ...sum);
}

/** What s, p, q and the angle are, for a network. */
function lifted(f, d) {
  const twice = (a, b) => row(id("s"), paren(a, op(","), b));
  const head = [id("s"), op("="), num(f.values.bias), op("+"), num(f.values.variance), op("⋅"), inner(d)];
  const ends = [
    op(","),
    id("p"),
    op("="),
    twice(id("x"), id("x")),
    op(","),
    id("q"),
    op("="),
    twice(prime(), prime()),
  ];
  const angle = [
    op(","),
    roman("cos"),
    id("φ"),
    op("="),
    frac(id("s"), node("msqrt", row(id("p"), id("q")))),
  ];
  return row(...head, ...ends, ...(f.name === "ArcCosine" ? angle : []));
}

/** The kernel as a list of <math> elements: a factor a line, so that narrow screens show all of it. */
export function formula(kernel, d) {
  const terms = active(kernel),
    distances = terms.flatMap((t) => t.factors).filter((f) => far(f, d)),
    notes = [];
  const rows = terms.flatMap((t, k) =>
    t.factors.map((f, j) => {
      const r = { number: distances.length > 1 ? distances.indexOf(f) + 1 : 0 };
      if (far(f, d)) notes.push(spelled(f, d, r));
      if (f.name === "NeuralNetwork" || f.name === "ArcCosine") notes.push(lifted(f, d));
      const head = k || j ? [op(j ? "×" : "+")] : [id("k"), paren(id("x"), op(","), prime()), op("=")];
      const scale = j || t.scale === null ? [] : [num(t.scale), op("⋅")];
      return row(...head, ...scale, PARTS[f.name](f, d, r));
    }),
  );
  if (!rows.length) rows.push(row(id("k"), paren(id("x"), op(","), prime()), op("="), node("mn", "0")));
  return [...rows, ...notes].map((line) => {
    const math = node("math", line);
    math.setAttribute("display", "block");
    return math;
  });
}
