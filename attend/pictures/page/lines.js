// Lines between tokens: queries on the left, keys on the right. Both lists scroll.
const pitch = 22;
const shades = 10;
const maxLines = 1500;
const movingLines = 300;  // maximum number per frame during scrolling; more take longer than a frame lasts
const restAfter = 120;  // milliseconds

class Lines {
  constructor(host) {
    this.canvas = element('canvas', {tabindex: 0, role: 'application', 'aria-roledescription': 'lines between tokens'});
    this.context = this.canvas.getContext('2d');
    this.frame = element('div', {class: 'frame'}, this.canvas);
    this.caption = element('span');
    host.append(this.frame, element('div', {class: 'under'}, this.caption));
    this.heads = [];  // {head, number}
    this.tops = [0, 0];
    this.focus = null;  // [side, index]
    new ResizeObserver(() => this.resize()).observe(this.frame);
    attachLineControls(this);
  }

  show(heads, rows, columns, name) {
    if (!this.lists || this.lists[0] !== rows || this.lists[1] !== columns) {
      this.tops = [0, 0];
      this.focus = null;
    }
    this.heads = heads;
    this.lists = [rows, columns];
    this.canvas.setAttribute('aria-label',
      `${name}: lines from ${rows.tokens.length} to ${columns.tokens.length} tokens. Up and down move ` +
      'from token to token, left and right between the lists, Enter goes to the strongest partner.');
    const longest = Math.max(rows.tokens.length, columns.tokens.length);
    setHeight(this.frame, longest * pitch + 16);
    this.resize();
  }

  resize() {
    if (!this.lists || !this.frame.clientWidth) return;
    this.ratio = Math.min(2, devicePixelRatio || 1);
    this.width = this.frame.clientWidth;
    this.height = this.frame.clientHeight;
    this.canvas.width = Math.round(this.width * this.ratio);
    this.canvas.height = Math.round(this.height * this.ratio);
    this.canvas.style.touchAction = this.most(0) + this.most(1) ? 'none' : 'pan-y';
    this.sides = [Math.round(this.width * 0.36), Math.round(this.width * 0.64)];
    const rows = Math.min(this.lists[0].tokens.length, Math.ceil(this.height / pitch));
    this.perRow = clamp(Math.floor(maxLines / Math.max(1, rows * this.heads.length)), 1, 16);
    this.caption.textContent =
      `left: ${this.lists[0].name} tokens, which look; right: ${this.lists[1].name} tokens; ` +
      `lines: the ${this.perRow} largest weights of each token and head; larger weights have stronger lines`;
    this.scroll(0, 0);
    this.draw();
  }

  most(side) {
    return Math.max(0, this.lists[side].tokens.length - (this.height - 16) / pitch);
  }

  scroll(leftRows, rightRows) {
    this.tops = [clamp(this.tops[0] + leftRows, 0, this.most(0)), clamp(this.tops[1] + rightRows, 0, this.most(1))];
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      this.resting = null;
      this.request();
    }, restAfter);
    this.request();
  }

  // Both lists, so that they reach their ends together.
  scrollBoth(rows) {
    const [left, right] = [this.most(0), this.most(1)];
    const longest = Math.max(left, right) || 1;
    this.scroll(rows * left / longest, rows * right / longest);
  }

  heightOf(side, index) {
    return 8 + (index + 0.5 - this.tops[side]) * pitch;
  }

  tokenAt(point) {
    const side = point.x <= this.sides[0] ? 0 : point.x >= this.sides[1] ? 1 : null;
    if (side === null) return null;
    const index = Math.floor(this.tops[side] + (point.y - 8) / pitch);
    return index >= 0 && index < this.lists[side].tokens.length ? [side, index] : null;
  }

  visible(side) {
    const first = Math.max(0, Math.floor(this.tops[side] - 8 / pitch));
    return [first, Math.min(this.lists[side].tokens.length, Math.ceil(first + this.height / pitch) + 1)];
  }

  // [other token, weight, number of the head], falling.
  partners([side, index]) {
    const found = [];
    for (const {head, number} of this.heads) {
      const best = side === 0 ? head.strongest(index) : head.strongestRows(index);
      for (const [other, weight] of best) found.push([other, weight, number]);
    }
    return found.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  }

  lines(focus) {
    const [side, index] = focus;
    const own = this.lists[side], others = this.lists[1 - side];
    const partners = this.partners(focus).slice(0, 8).map(([other, weight, number]) =>
      [this.heads.length > 1 ? `head ${number + 1}` : '', `${shown(others.tokens[other])} (${other + 1})`, exact(weight)]);
    return [[own.name, `${shown(own.tokens[index])} (${index + 1})`, side === 0 ? 'looks at' : 'seen by'],
            ...(partners.length ? partners : [['', 'nothing', '']])];
  }

  setFocus(focus) {
    this.focus = focus;
    this.marked = new Map();
    if (focus) {
      for (const [other, weight] of this.partners(focus))
        this.marked.set(other, Math.max(this.marked.get(other) || 0, Math.abs(weight)));
    }
    this.request();
  }

  reveal([side, index]) {
    const shown = (this.height - 16) / pitch;
    const top = this.tops[side];
    this.tops[side] = clamp(index < top ? index : index + 1 > top + shown ? index + 1 - shown : top, 0, this.most(side));
    this.request();
  }

  request() {
    if (this.requested) return;
    this.requested = true;
    requestAnimationFrame(() => {
      this.requested = false;
      this.draw();
    });
  }

  draw() {
    if (!this.lists || !this.width) return;
    const context = this.context;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    const paths = this.heads.map(({head}) => this.pathsOf(head));
    const least = this.resting ? leastShade(paths, movingLines) : 1;
    paths.forEach((path, i) => this.drawPaths(context, path, headColor(this.heads[i].number), least));
    this.drawTokens(context, 0);
    this.drawTokens(context, 1);
    if (this.heads.length) mapDrawn();
  }

  // Returns the lines of a head outside the focus and in it, per shade, as [row, column, row, column, ...].
  pathsOf(head) {
    const strong = Array.from({length: shades}, () => []), faint = Array.from({length: shades}, () => []);
    const [first, last] = this.visible(0);
    for (let row = first; row < last; ++row) {
      const inFocus = this.focus && this.focus[0] === 0 && this.focus[1] === row;
      for (const [column, weight] of head.strongest(row).slice(0, inFocus ? 16 : this.perRow)) {
        const shade = Math.round(Math.abs(weight) / head.scale * (shades - 1));
        if (shade > 0) (this.isDimmed(row, column) ? faint : strong)[shade].push(row, column);
      }
    }
    if (this.focus && this.focus[0] === 1) this.addFarRows(head, strong, first, last);
    return [faint, strong];
  }

  // One path for each of some strengths: a path a line would take too long.
  drawPaths(context, [faint, strong], color, least) {
    context.strokeStyle = color;
    for (const [paths, share] of [[faint, 0.12], [strong, this.focus ? 1 : 0.85]]) {
      paths.forEach((path, shade) => {
        if (!path.length || shade < least) return;
        context.globalAlpha = share * shade / (shades - 1);
        context.lineWidth = 0.75 + 1.75 * shade / (shades - 1);
        this.drawLines(context, path);
      });
    }
    context.globalAlpha = 1;
  }

  // Lines to the token in focus that come from beyond the window.
  addFarRows(head, strong, first, last) {
    for (const [row, weight] of head.strongestRows(this.focus[1])) {
      const shade = Math.round(Math.abs(weight) / head.scale * (shades - 1));
      if ((row < first || row >= last) && shade > 0) strong[shade].push(row, this.focus[1]);
    }
  }

  isDimmed(row, column) {
    return this.focus && this.focus[1] !== (this.focus[0] === 0 ? row : column);
  }

  drawLines(context, path) {
    const [from, to] = this.sides;
    context.beginPath();
    for (let i = 0; i < path.length; i += 2) {
      const start = this.heightOf(0, path[i]), end = this.heightOf(1, path[i + 1]);
      const bend = Math.abs(end - start) > 4 * this.height ? 0 : (to - from) * 0.4;
      context.moveTo(from, start);
      if (bend) context.bezierCurveTo(from + bend, start, to - bend, end, to, end);
      else context.lineTo(to, end);
    }
    context.stroke();
  }

  drawTokens(context, side) {
    const [first, last] = this.visible(side);
    const x = this.sides[side] + (side ? 8 : -8);
    const room = (side ? this.width - x : x) - 10;
    context.font = labelFont;
    context.textBaseline = 'middle';
    context.textAlign = side ? 'left' : 'right';
    const numbered = this.lists[side].tokens.length > 40 && room > 120;
    for (let index = first; index < last; ++index) {
      const y = this.heightOf(side, index);
      const own = this.focus && this.focus[0] === side && this.focus[1] === index;
      const partner = this.focus && this.focus[0] !== side ? this.marked.get(index) : 0;
      if (own || partner) {
        context.globalAlpha = own ? 0.25 : 0.08 + 0.3 * Math.min(1, partner);
        context.fillStyle = own ? colors.mark : colors.on;
        context.fillRect(side ? x - 5 : 4, y - pitch / 2 + 1, room + 8, pitch - 2);
        context.globalAlpha = 1;
      }
      context.fillStyle = own ? colors.mark : colors.text;
      const token = shortened(shown(this.lists[side].tokens[index]), Math.max(4, Math.floor((room - (numbered ? 50 : 0)) / 7.5)));
      context.fillText(token, x, y, room);
      if (!numbered) continue;
      context.fillStyle = colors.soft;
      context.textAlign = side ? 'right' : 'left';
      context.fillText(String(index + 1), side ? this.width - 8 : 8, y);
      context.textAlign = side ? 'left' : 'right';
    }
  }
}

// Returns the lowest shade for which at most `most` lines have this shade or a stronger one. The strongest shade is
// always drawn.
function leastShade(paths, most) {
  let left = most;
  for (let shade = shades - 1; shade > 0; --shade) {
    for (const path of paths) left -= (path[0][shade].length + path[1][shade].length) / 2;
    if (left < 0) return Math.min(shades - 1, shade + 1);
  }
  return 1;
}

function attachLineControls(lines) {
  const {canvas} = lines;
  let drag = null;
  canvas.addEventListener('pointerdown', event => {
    canvas.setPointerCapture(event.pointerId);
    drag = {y: event.clientY, travelled: 0};
  });
  canvas.addEventListener('pointermove', event => {
    if (!lines.lists) return;
    if (!drag) return hoverLines(lines, event);
    drag.travelled += Math.abs(event.clientY - drag.y);
    lines.scrollBoth((drag.y - event.clientY) / pitch);
    drag.y = event.clientY;
    hush();
  });
  canvas.addEventListener('pointerup', event => {
    const tapped = drag && drag.travelled < 6;
    drag = null;
    if (tapped && lines.lists) hoverLines(lines, event);
  });
  canvas.addEventListener('pointercancel', () => { drag = null; });
  canvas.addEventListener('pointerleave', () => {
    hush();
    lines.setFocus(null);
  });
  canvas.addEventListener('blur', hush);
  canvas.addEventListener('wheel', event => wheelLines(lines, event), {passive: false});
  canvas.addEventListener('keydown', event => keyLines(lines, event));
}

function hoverLines(lines, event) {
  const focus = lines.tokenAt(pointIn(lines.canvas, event));
  if (String(focus) !== String(lines.focus)) lines.setFocus(focus);
  if (focus) tell(lines.lines(focus), event.clientX, event.clientY);
  else hush();
}

// The wheel scrolls the list under the pointer, or both lists if the pointer is between them.
function wheelLines(lines, event) {
  if (!lines.lists || event.ctrlKey || lines.most(0) + lines.most(1) === 0) return;
  event.preventDefault();
  const rows = event.deltaY * (event.deltaMode === 1 ? 20 : 1) / pitch;
  const {x} = pointIn(lines.canvas, event);
  if (x < lines.sides[0]) lines.scroll(rows, 0);
  else if (x > lines.sides[1]) lines.scroll(0, rows);
  else lines.scrollBoth(rows);
}

function keyLines(lines, event) {
  if (event.ctrlKey || event.altKey || event.metaKey || !lines.lists) return;
  if (event.key === 'Escape') {
    lines.setFocus(null);
    return hush();
  }
  const [side, index] = lines.focus || [0, Math.ceil(lines.tops[0]) - 1];
  const page = Math.max(1, Math.floor(lines.height / pitch) - 1);
  const steps = {ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity};
  let target = null;
  if (event.key in steps) target = [side, index + steps[event.key]];
  if (event.key === 'ArrowLeft') target = [0, index];
  if (event.key === 'ArrowRight') target = [1, index];
  if (event.key === 'Enter' && lines.focus) {
    const [best] = lines.partners(lines.focus);
    if (best) target = [1 - side, best[0]];
  }
  if (!target || !lines.lists[target[0]].tokens.length) return;
  event.preventDefault();
  target[1] = clamp(target[1], 0, lines.lists[target[0]].tokens.length - 1);
  lines.setFocus(target);
  lines.reveal(target);
  const text = lines.lines(target), box = lines.canvas.getBoundingClientRect();
  tell(text, box.left + lines.sides[target[0]], box.top + lines.heightOf(...target));
  say(text);
}
