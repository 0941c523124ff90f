// Numbers and names as people read them.

/** A number with about four digits; a dash for none. */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return minus(value.toLocaleString("en"));
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return minus(value.toExponential(2));
  return minus(value.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4));
}

/** A number with its unit. */
export function quantity(value, unit) {
  return unit ? `${number(value)} ${unit}` : number(value);
}

/** A key of JSON in words. */
export function words(key) {
  return key.replaceAll("_", " ");
}

function minus(text) {
  return text.replace("-", "−");
}

/** Replaces the rows of a list of terms; existing ones are kept, so that reading is not disturbed. */
export function terms(list, rows) {
  while (list.children.length > rows.length) list.lastElementChild.remove();
  rows.forEach(([name, text], place) => {
    let row = list.children[place];
    if (!row) {
      row = document.createElement("div");
      row.append(document.createElement("dt"), document.createElement("dd"));
      list.append(row);
    }
    const [term, value] = row.children;
    if (term.textContent !== name) term.textContent = name;
    if (value.textContent !== text) value.textContent = text;
    row.dataset.name = name;
  });
}
