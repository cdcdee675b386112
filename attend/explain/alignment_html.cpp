#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "attend/explain/alignment.h"
#include "attend/explain/picture-inl.h"
#include "attend/explain/visible_token-inl.h"

namespace attend {
namespace {

constexpr std::string_view kPageStyle = R"(
:root{color-scheme:light dark;--page:#f6f8fa;--card:#fff;--text:#1f2328;--soft:#59636e;
--line:#d1d9e0;--mark:#bc4c00}
@media(prefers-color-scheme:dark){:root{--page:#010409;--card:#0d1117;--text:#e6edf3;
--soft:#9198a1;--line:#3d444d;--mark:#ffa657}}
body{margin:0;min-height:100vh;display:flex;flex-direction:column;align-items:center;
justify-content:center;gap:12px;padding:24px;box-sizing:border-box;background:var(--page);
color:var(--text);font:14px/1.45 "DejaVu Sans",Verdana,"Noto Sans",sans-serif}
figure{margin:0;max-width:100%;overflow:auto;border:1px solid var(--line);border-radius:10px;
background:var(--card)}
svg{display:block;cursor:crosshair;outline:none}
svg:focus-visible{outline:2px solid var(--mark);outline-offset:-2px}
p{margin:0;color:var(--soft);font-size:13px}
.band{fill:none;stroke:var(--mark);stroke-width:1.5;opacity:.8;pointer-events:none}
.ring{fill:none;stroke:var(--mark);stroke-width:2.5;pointer-events:none}
text.on{fill:var(--mark);font-weight:bold}
#tip{position:fixed;z-index:1;pointer-events:none;max-width:320px;padding:8px 12px;
border:1px solid var(--line);border-radius:8px;background:var(--card);color:var(--text);
box-shadow:0 4px 16px #0003;overflow-wrap:anywhere}
#tip table{border-spacing:0}
#tip td,#tip th{padding:1px 12px 1px 0;text-align:left;vertical-align:top}
#tip th{color:var(--soft);font-weight:normal}
#tip td:last-child{padding-right:0;font-variant-numeric:tabular-nums}
[hidden]{display:none}
)";

// Texts reach the page as textContent alone, never as markup.
constexpr std::string_view kScript = R"(
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const svg = document.querySelector('svg');
const tip = document.getElementById('tip');
const map = data.map;
const rows = data.target.length, columns = data.source.length;
const part = name => document.getElementById(name);
let cell = null;

function show(weight) {
  return weight === null ? 'not a number' : weight.toFixed(Math.abs(weight) < 0.001 ? 6 : 4);
}
function place(rect, visible, x, y, width, height) {
  rect.style.display = visible ? '' : 'none';
  for (const [key, value] of Object.entries({x, y, width, height})) rect.setAttribute(key, value);
}
function mark(row, column) {
  const width = columns * map.width, height = rows * map.height;
  place(part('row'), row !== null, map.left, map.top + row * map.height, width, map.height);
  place(part('column'), column !== null, map.left + column * map.width, map.top, map.width, height);
  place(part('cell'), row !== null && column !== null, map.left + column * map.width,
        map.top + row * map.height, map.width, map.height);
  for (const label of svg.querySelectorAll('.on')) label.classList.remove('on');
  for (const [name, index] of [['row', row], ['column', column]]) {
    if (index === null) continue;
    const label = svg.querySelector(`[data-${name}="${index}"]`);
    if (label) label.classList.add('on');
  }
}
function lines(row, column) {
  if (row !== null && column !== null) {
    return [['source', data.source[column], `${column + 1} of ${columns}`],
            ['target', data.target[row], `${row + 1} of ${rows}`],
            ['weight', show(data.weights[row][column])]];
  }
  const byRow = row !== null;
  const weights = byRow ? data.weights[row] : data.weights.map(line => line[column]);
  const names = byRow ? data.source : data.target;
  const best = weights.map((weight, index) => [weight, index]).filter(pair => pair[0] !== null)
    .sort((a, b) => b[0] - a[0]).slice(0, 5);
  return [byRow ? ['target', data.target[row], 'looks at'] : ['source', data.source[column], 'seen by'],
          ...best.map(([weight, index]) => ['', names[index], show(weight)])];
}
function tell(row, column, x, y) {
  mark(row, column);
  const table = document.createElement('table');
  for (const line of lines(row, column)) {
    const tr = table.insertRow();
    line.forEach((text, index) => {
      const field = tr.appendChild(document.createElement(index ? 'td' : 'th'));
      field.textContent = text;
    });
  }
  tip.replaceChildren(table);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, x + 16 + box.width > innerWidth ? x - 16 - box.width : x + 16) + 'px';
  tip.style.top = Math.max(4, y + 16 + box.height > innerHeight ? y - 16 - box.height : y + 16) + 'px';
}
function clear() {
  tip.hidden = true;
  mark(null, null);
}
function within(index, count) {
  return index >= 0 && index < count ? index : null;
}
svg.addEventListener('pointermove', event => {
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const label = event.target.closest('[data-row],[data-column]');
  let row = within(Math.floor((at.y - map.top) / map.height), rows);
  let column = within(Math.floor((at.x - map.left) / map.width), columns);
  if (label) {
    row = 'row' in label.dataset ? Number(label.dataset.row) : null;
    column = 'column' in label.dataset ? Number(label.dataset.column) : null;
  } else if (row === null || column === null) {
    if (row === null || at.x > map.left) return clear();
  }
  if (row !== null && column !== null) cell = [row, column];
  tell(row, column, event.clientX, event.clientY);
});
svg.addEventListener('pointerleave', clear);
svg.addEventListener('blur', clear);
svg.addEventListener('keydown', event => {
  const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
  if (event.key === 'Escape') clear();
  if (!step || !rows || !columns) return;
  event.preventDefault();
  const clamp = (value, count) => Math.min(count - 1, Math.max(0, value));
  cell = cell ? [clamp(cell[0] + step[0], rows), clamp(cell[1] + step[1], columns)] : [0, 0];
  const at = new DOMPoint(map.left + (cell[1] + 1) * map.width, map.top + (cell[0] + 1) * map.height)
    .matrixTransform(svg.getScreenCTM());
  tell(cell[0], cell[1], at.x, at.y);
});
svg.setAttribute('tabindex', '0');
)";

// Without "<", nothing in the data can end the script element that holds it.
std::string script_data(const nlohmann::ordered_json& document) {
  std::string result;
  for (const char c : dump(document)) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

std::vector<std::string> visible(const std::vector<std::string>& tokens) {
  std::vector<std::string> result;
  result.reserve(tokens.size());
  for (const std::string& token : tokens) result.push_back(visible_token(token));
  return result;
}

}  // namespace

std::string alignment_html(const Alignment& alignment) {
  const Grid grid = checked_picture_grid(alignment);
  const PictureLayout layout = picture_layout(alignment, grid);
  const std::string marks =
      "<rect id=\"row\" class=\"band\" style=\"display:none\"/>"
      "<rect id=\"column\" class=\"band\" style=\"display:none\"/>"
      "<rect id=\"cell\" class=\"ring\" rx=\"3\" style=\"display:none\"/>\n";
  const nlohmann::ordered_json data = {{"source", visible(alignment.source)},
                                       {"target", visible(alignment.target)},
                                       {"map",
                                        {{"left", layout.left},
                                         {"top", layout.top},
                                         {"width", layout.cell_width},
                                         {"height", layout.cell_height}}},
                                       {"weights", to_json(grid)}};
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>{}</title>\n<style>{}</style>\n"
      "</head>\n<body>\n<figure>\n",
      escape_markup(describe(alignment)), kPageStyle);
  page += picture_svg(alignment, grid, layout, marks);
  page +=
      "</figure>\n<p>Point at a cell or a label, or use the arrow keys.</p>\n"
      "<div id=\"tip\" role=\"status\" hidden></div>\n<script type=\"application/json\" "
      "id=\"data\">";
  page += script_data(data);
  page += "</script>\n<script>";
  page += kScript;
  return page + "</script>\n</body>\n</html>\n";
}

}  // namespace attend
