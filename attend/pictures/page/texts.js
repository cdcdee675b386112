// Texts reach the page only as textContent, never as markup.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    // A style that is an attribute would be refused by a page's Content-Security-Policy.
    if (key === 'style') made.style.cssText = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// Sets the height, limited to the room in the window below the frame or 360 pixels, if that is more.
function setHeight(frame, pixels) {
  const room = innerHeight - 100 - frame.getBoundingClientRect().top - scrollY;
  frame.style.height = `${Math.round(Math.max(120, Math.min(pixels, Math.max(360, room))))}px`;
}

function part(id) {
  return document.getElementById(id);
}

// The shortest decimal that is this float and no other.
function exact(weight) {
  if (Number.isNaN(weight)) return 'not a number';
  if (!Number.isFinite(weight)) return weight > 0 ? 'infinite' : 'minus infinite';
  for (let digits = 1; digits < 10; ++digits) {
    const rounded = Number(weight.toPrecision(digits));
    if (Math.fround(rounded) === weight) return String(rounded);
  }
  return String(weight);
}

function figure(value) {
  return value === null ? 'not a number' : String(Number(value.toPrecision(4)));
}

// In a cell: "" for what rounds to 0, ".87", "1.0", "12", "-.25".
function brief(weight) {
  if (!Number.isFinite(weight)) return 'n/a';
  const size = Math.abs(weight);
  if (size < 0.005) return '';
  return weight.toFixed(size < 0.995 ? 2 : size < 9.95 ? 1 : 0).replace('0.', '.');
}

function shortened(text, length) {
  const letters = Array.from(text);
  return letters.length <= length ? text : letters.slice(0, length - 1).join('') + '…';
}

function shown(token) {
  return token === '' ? '(empty)' : token;
}

function place(index, list) {
  return `${index + 1} of ${list.tokens.length}`;
}

function cellLines(head, rows, columns, row, column) {
  const {weight, bound} = head.at(row, column);
  const text = weight !== undefined ? exact(weight)
    : bound === Infinity ? 'not held by this page'
    : `at most ${exact(bound)}: not among the ${head.kept} largest of its row`;
  return [[rows.name || 'row', shown(rows.tokens[row]), place(row, rows)],
          [columns.name || 'column', shown(columns.tokens[column]), place(column, columns)],
          ['weight', text]];
}

// Shows lines of text next to a point of the window.
function tell(lines, x, y) {
  const table = element('table');
  for (const line of lines) {
    const row = table.insertRow();
    line.forEach((text, index) => {
      const field = element(index ? 'td' : 'th');
      field.textContent = text;
      if (index && index === line.length - 1 && line.length === 2) field.colSpan = 2;
      row.append(field);
    });
  }
  const tip = part('tip');
  tip.replaceChildren(table);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - 16 - box.width : x + 16;
  const top = y + 16 + box.height > innerHeight ? y - 16 - box.height : y + 16;
  tip.style.left = Math.max(4, Math.min(left, innerWidth - box.width - 4)) + 'px';
  tip.style.top = Math.max(4, top) + 'px';
}

function hush() {
  part('tip').hidden = true;
}

// Announces lines to screen readers; the tip shows the lines on screen.
function say(lines) {
  part('said').textContent = lines.map(line => line.join(' ')).join(', ');
}

function complain(problem) {
  part('problem').textContent = `This page is damaged: ${problem.message || problem}. Make it anew.`;
  part('problem').hidden = false;
}

let drawnOnce = false;

// When the first map is on the screen, for whoever measures.
function mapDrawn() {
  if (drawnOnce) return;
  drawnOnce = true;
  requestAnimationFrame(() => performance.mark('first map'));
}
