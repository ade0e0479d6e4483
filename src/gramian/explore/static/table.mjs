/* Tables: reading a CSV in the page, and making a scene of some of its columns. The file stays in the browser.
   A message names the line and the column of what cannot be read. */

import { factor, term } from "./math/kernels.mjs";
import { likelihoods, way } from "./scenes.mjs";
import { rounded } from "./dom.mjs";

const MOST_BYTES = 5e6,
  MOST_WORDS = 12;

/** The cells of a text with separators, quotes included. */
function cells(text) {
  const head = text.split("\n", 1)[0];
  const counts = [",", ";", "\t"].map((sign) => [head.split(sign).length, sign]).sort((a, b) => b[0] - a[0]);
  const separator = counts[0][1],
    rows = [];
  let row = [],
    cell = "",
    quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c === '"' && text[i + 1] === '"') cell += text[i++];
      else if (c === '"') quoted = false;
      else cell += c;
    } else if (c === '"' && cell === "") quoted = true;
    else if (c === separator) (row.push(cell), (cell = ""));
    else if (c === "\n") (row.push(cell), rows.push(row), (row = []), (cell = ""));
    else if (c !== "\r") cell += c;
  }
  if (quoted) throw new Error("A quote is opened and never closed. Is the file cut off?");
  if (cell !== "" || row.length) (row.push(cell), rows.push(row));
  return rows.filter((r) => r.length > 1 || r[0].trim() !== "");
}

const EMPTY = new Set(["", "na", "nan", "null", "none", "-", "?"]);

/** {name, columns: [{name, values, words}], target, note}; throws an Error that says what to mend. */
export function readTable(name, text) {
  if (text.length > MOST_BYTES)
    throw new Error(
      `${name} has ${(text.length / 1e6).toFixed(1)} MB; the page reads up to ${MOST_BYTES / 1e6}. Use gramian explore ${name}.`,
    );
  if (text.includes("\u0000"))
    throw new Error(`${name} is no text: is it a workbook or a picture? Save the table as CSV.`);
  const [head, ...rows] = cells(text);
  if (!head || head.length < 2)
    throw new Error(
      `${name} needs two columns or more, with their names in the first line and commas, semicolons or tabs between them.`,
    );
  if (!rows.length) throw new Error(`${name} has no rows below its first line.`);
  const wrong = rows.findIndex((r) => r.length !== head.length);
  if (wrong >= 0)
    throw new Error(
      `${name}, line ${wrong + 2}: ${rows[wrong].length} cells, but the first line names ${head.length} columns.`,
    );
  const columns = head.map((title, j) =>
    column(
      name,
      title.trim() || `column ${j + 1}`,
      rows.map((r) => r[j].trim()),
    ),
  );
  const whole = rows.map((_, i) => columns.every((c) => Number.isFinite(c.values[i])));
  const kept = whole.filter(Boolean).length;
  if (!kept) throw new Error(`${name} has no row without an empty cell.`);
  for (const c of columns) c.values = c.values.filter((_, i) => whole[i]);
  const numbers = columns.filter((c) => !c.words);
  if (!numbers.length)
    throw new Error(
      `${name} has no column of numbers: ${columns.map((c) => `“${c.name}”`).join(", ")} have words.`,
    );
  const note =
    kept < rows.length
      ? `${rows.length - kept} of ${rows.length} rows have empty cells and were left out.`
      : "";
  return {
    name,
    columns,
    target: (columns.at(-1).words?.length > 2 ? numbers.at(-1) : columns.at(-1)).name,
    note,
  };
}

function column(name, title, texts) {
  const values = texts.map((t) => (EMPTY.has(t.toLowerCase()) ? NaN : Number(t)));
  const bad = texts.findIndex((t, i) => Number.isNaN(values[i]) && !EMPTY.has(t.toLowerCase()));
  if (bad < 0) return { name: title, values, words: null };
  const words = [...new Set(texts.filter((t) => !EMPTY.has(t.toLowerCase())))].sort();
  const numeric = values.filter(Number.isFinite).length;
  if (numeric > 0 || words.length > MOST_WORDS) {
    throw new Error(
      `${name}, line ${bad + 2}, column “${title}”: “${texts[bad].slice(0, 40)}” is not a number.`,
    );
  }
  return {
    name: title,
    values: texts.map((t) => (EMPTY.has(t.toLowerCase()) ? NaN : words.indexOf(t))),
    words,
  };
}

const mean = (v) => v.reduce((s, x) => s + x, 0) / v.length;
const range = (v) => [Math.min(...v), Math.max(...v)];

export function widened([low, high], share = 0.08) {
  const span = high - low || Math.abs(high) || 1;
  return [rounded(low - share * span, 4), rounded(high + share * span, 4)];
}

/** A scene of some columns: one or two to look along, and the target; at most `most` rows of them. */
export function tableScene(table, xs, target, most) {
  const find = (name) => table.columns.find((c) => c.name === name);
  const inputs = xs.map(find),
    own = find(target);
  if (own.words && own.words.length > 2)
    throw new Error(`“${target}” has ${own.words.length} different words; two classes can be drawn.`);
  const n = own.values.length,
    step = Math.max(1, n / most),
    rows = [];
  for (let k = 0; k < n; k += step) rows.push(Math.floor(k));
  const X = rows.map((i) => inputs.map((c) => c.values[i])),
    y = rows.map((i) => own.values[i]);
  const notes = [table.note, rows.length < n ? `${rows.length} of ${n} rows are shown.` : ""].filter(Boolean);
  const binary = Boolean(own.words),
    centre = binary ? 0 : rounded(mean(y), 4),
    spread = mean(y.map((v) => (v - centre) ** 2)) || 1;
  const spans = inputs.map((c) => range(c.values)),
    lengths = spans.map(([a, b]) => rounded((b - a || 1) / 6, 3));
  const likelihood = binary ? "bernoulli-logit" : "gaussian";
  const view = { x: widened(spans[0]), y: binary ? [-0.15, 1.15] : widened(range(y), 0.25) };
  if (spans.length > 1) view.x2 = widened(spans[1]);
  return {
    id: "table",
    title: table.name,
    tries: ["Press Optimise, then change the kernel and compare the evidence."],
    text: [
      `${rows.length} rows of “${target}” against ${xs.map((x) => `“${x}”`).join(" and ")}.`,
      ...notes,
    ].join(" "),
    dims: xs.length,
    view,
    X,
    y,
    kernel: {
      terms: [
        term(
          [factor("Matern52", { lengthscale: xs.length > 1 ? lengths : lengths[0] })],
          binary ? 4 : rounded(spread, 3),
        ),
      ],
    },
    mean: { value: centre, held: binary },
    likelihood: likelihoods({
      gaussian: { noise: rounded(spread / 10, 3) },
      "student-t": { scale: rounded(Math.sqrt(spread / 10), 3), df: 4 },
    }),
    ways: [way({ likelihood })],
    names: { x: xs, y: target },
    words: own.words ?? undefined,
  };
}
