/* Small helpers: elements, numbers for people, ticks. */

const SVG = "http://www.w3.org/2000/svg";

export function el(tag, own = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(own)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key in node && key !== "list" && typeof value !== "string") node[key] = value;
    else if (value !== undefined && value !== null) node.setAttribute(key, value);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}

export function svg(tag, own = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(own)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export function options(select, pairs, chosen) {
  select.replaceChildren(
    ...pairs.map(([value, text, disabled]) => el("option", { value, disabled: Boolean(disabled) }, text)),
  );
  if (chosen !== undefined) select.value = chosen;
}

/** Three digits that count, without a needless zero. */
export function short(v, digits = 3) {
  if (v === null || !Number.isFinite(v)) return "–";
  if (v !== 0 && (Math.abs(v) >= 1e5 || Math.abs(v) < 1e-3))
    return v.toExponential(digits - 1).replace("e+", "e");
  return String(Number(v.toPrecision(digits)));
}

export const minus = (text) => text.replaceAll("-", "−");
export const rounded = (v, digits = 6) => Number(v.toPrecision(digits));

/** About `count` round numbers between two. */
export function ticks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1),
    size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * size).find((s) => s >= raw - 1e-12) ?? size * 10;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++)
    found.push(rounded(k * step, 10) || 0);
  return found;
}

export const tickText = (v) =>
  minus(Math.abs(v) >= 1e5 || (v !== 0 && Math.abs(v) < 1e-3) ? v.toExponential() : String(v));
