// A matrix of weights in a canvas that is panned and zoomed. Positions are in cells, scales in pixels a cell.
const largestCell = 64;
const readableCell = 12;
const rim = 8;  // to the right of a matrix and below, for the halves of labels
const labelFont = '12px "DejaVu Sans",Verdana,"Noto Sans",sans-serif';

function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}

class Matrix {
  constructor(host, name) {
    this.canvas = element('canvas', {tabindex: 0, role: 'application', 'aria-roledescription': 'matrix of weights'});
    this.context = this.canvas.getContext('2d');
    this.name = name;
    this.frame = element('div', {class: 'frame'}, this.canvas);
    this.caption = element('span');
    this.legend = element('span', {class: 'legend'});
    host.append(this.frame, element('div', {class: 'under'}, this.caption, this.legend));
    this.tiles = new Tiles(this);
    this.cursor = null;
    this.head = null;
    this.choose = null;  // optional function of a cell that is clicked
    this.moving = false;
    this.widths = new Map();
    new ResizeObserver(() => this.resize()).observe(this.frame);
    attachMatrixControls(this);
  }

  // The buttons that zoom, for a bar of the caller's.
  buttons() {
    const make = (text, label, action) => {
      const button = element('button', {type: 'button', 'aria-label': label, title: label}, text);
      button.addEventListener('click', action);
      return button;
    };
    return element('span', {class: 'zoom', role: 'group', 'aria-label': 'Zoom'},
                   make('−', 'Zoom out', () => this.zoomAtCentre(0.5)),
                   make('+', 'Zoom in', () => this.zoomAtCentre(2)),
                   make('Fit', 'Show the whole map', () => this.fit()));
  }

  show(head, rows, columns, {grey = false, name = this.name} = {}) {
    const same = this.head && this.rows === rows && this.columns === columns;
    Object.assign(this, {head, rows, columns, grey});
    this.canvas.setAttribute('aria-label',
      `${name}: ${head.rows} by ${head.columns} weights. Arrow keys move from weight to weight, ` +
      'plus and minus zoom, 0 shows the whole map, Enter goes to the strongest weight of the row.' +
      (this.choose ? ' Space shows the parts of the score.' : ''));
    this.caption.textContent = `rows: ${rows.name}, columns: ${columns.name}` +
      (head.whole ? '' : `; up close, the ${head.kept} largest weights of each row`) +
      (this.choose ? '; click a cell for the parts of its score' : '');
    this.recolor();
    this.measureGutters();
    if (!same) this.cursor = null;
    const cell = clamp((this.frame.clientWidth - this.gutter - rim) / head.columns, 14, 44);
    setHeight(this.frame, this.top + head.rows * cell + rim + 2);
    this.resize();
    if (!same) this.fit();
  }

  recolor() {
    if (!this.head) return;
    this.words = this.grey ? colors.greys : colors.words;
    this.tiles.clear();
    const {rows, columns, codes} = this.head.overview;
    this.overview = paintCodes(this.overview || document.createElement('canvas'), codes, rows, columns, this.words);
    this.drawLegend();
    this.request();
  }

  drawLegend() {
    const {scale} = this.head;
    const signed = this.head.codes.some(code => code < 0 && code > -128);
    const steps = new Int8Array(signed ? 255 : 128);
    for (let i = 0; i < steps.length; ++i) steps[i] = signed ? i - 127 : i;
    const strip = paintCodes(document.createElement('canvas'), steps, 1, steps.length, this.words);
    const text = value => value === 0 ? '0' : String(Number(value.toPrecision(2)));
    this.legend.replaceChildren(signed ? text(-scale) : '0', strip,
                                signed ? text(scale) : `${text(scale / 4)} (middle) to ${text(scale)}`);
    if (!this.head.codes.includes(-128)) return;
    const patch = paintCodes(document.createElement('canvas'), new Int8Array([-128]), 1, 1, this.words);
    patch.className = 'patch';
    this.legend.append(patch, 'not finite');
  }

  measureGutters() {
    const widest = list => list.tokens.slice(0, 3000).reduce(
      (width, token) => Math.max(width, this.labelOf(token).width), 0);
    const most = this.frame.clientWidth < 500 ? 84 : 130;
    this.gutter = Math.round(clamp(widest(this.rows) + 12, 44, most));
    this.top = Math.round(clamp(widest(this.columns) + 12, 44, 110));
  }

  labelOf(token) {
    let label = this.widths.get(token);
    if (!label) {
      this.context.font = labelFont;
      const text = shortened(shown(token), 14);
      label = {text, width: this.context.measureText(text).width};
      this.widths.set(token, label);
    }
    return label;
  }

  // A map that is narrower than the available width is centred.
  get left() {
    const spare = this.width - this.gutter - rim - this.head.columns * this.scaleX;
    return this.gutter + Math.max(0, Math.round(spare / 2));
  }

  get bodyWidth() {
    return Math.max(1, this.width - this.left - rim);
  }

  get bodyHeight() {
    return Math.max(1, this.height - this.top - rim);
  }

  resize() {
    if (!this.head || !this.frame.clientWidth) return;
    const wasWhole = !this.scaleX || this.isWhole();
    this.ratio = Math.min(2, devicePixelRatio || 1);
    this.width = this.frame.clientWidth;
    this.height = this.frame.clientHeight;
    this.canvas.width = Math.round(this.width * this.ratio);
    this.canvas.height = Math.round(this.height * this.ratio);
    this.measureGutters();
    if (wasWhole) this.fit();
    this.settle();
    this.draw();
  }

  fitScales() {
    let x = Math.min(44, Math.max(1, this.width - this.gutter - rim) / this.head.columns);
    let y = Math.min(44, this.bodyHeight / this.head.rows);
    if (Math.max(x, y) <= 3 * Math.min(x, y)) x = y = Math.min(x, y);
    return [x, y];
  }

  isWhole() {
    const [x, y] = this.fitScales();
    return this.scaleX <= x * 1.001 && this.scaleY <= y * 1.001;
  }

  fit() {
    if (!this.head || !this.width) return;
    [this.scaleX, this.scaleY] = this.fitScales();
    this.x = this.y = 0;
    this.settle();
  }

  // Keeps the map in sight.
  settle() {
    if (!this.head || !this.scaleX) return;
    this.x = clamp(this.x, 0, Math.max(0, this.head.columns - this.bodyWidth / this.scaleX));
    this.y = clamp(this.y, 0, Math.max(0, this.head.rows - this.bodyHeight / this.scaleY));
    // A map that cannot be panned leaves a finger's strokes to the page.
    this.canvas.style.touchAction = this.isWhole() ? 'pan-y' : 'none';
    this.request();
  }

  pan(pixelsX, pixelsY) {
    this.x += pixelsX / this.scaleX;
    this.y += pixelsY / this.scaleY;
    this.settle();
  }

  // The cell under the point (in pixels of the canvas) keeps its place.
  zoom(factor, pointX, pointY) {
    const [fitX, fitY] = this.fitScales();
    const largest = Math.max(largestCell, fitX, fitY);
    const bounded = clamp(factor, Math.max(fitX / this.scaleX, fitY / this.scaleY),
                          Math.max(1, largest / Math.min(this.scaleX, this.scaleY)));
    const bodyX = pointX - this.left, bodyY = pointY - this.top;
    const x = this.x + bodyX / this.scaleX, y = this.y + bodyY / this.scaleY;
    this.scaleX = Math.min(largest, this.scaleX * bounded);
    this.scaleY = Math.min(largest, this.scaleY * bounded);
    this.x = x - (pointX - this.left) / this.scaleX;
    this.y = y - bodyY / this.scaleY;
    this.settle();
  }

  zoomAtCentre(factor) {
    const at = this.cursor && this.pointOf(this.cursor);
    if (at) return this.zoom(factor, at.x, at.y);
    this.zoom(factor, this.left + this.bodyWidth / 2, this.top + this.bodyHeight / 2);
  }

  // The middle of a cell in pixels of the canvas.
  pointOf([row, column]) {
    return {x: this.left + (column + 0.5 - this.x) * this.scaleX, y: this.top + (row + 0.5 - this.y) * this.scaleY};
  }

  // Returns [row, column] of the cell under a point of the canvas. Either is null if the point is outside the cells.
  cellAt(pointX, pointY) {
    const column = Math.floor(this.x + (pointX - this.left) / this.scaleX);
    const row = Math.floor(this.y + (pointY - this.top) / this.scaleY);
    return [pointY >= this.top && row < this.head.rows ? row : null,
            pointX >= this.left && column < this.head.columns ? column : null];
  }

  // Scrolls to a cell. A cell near the visible cells appears at the edge, a farther one in the middle.
  reveal([row, column]) {
    const nearest = (start, shown, cell) => {
      if (cell >= start && cell + 1 <= start + shown) return start;
      if (cell < start - 2 || cell > start + shown + 2) return cell + 0.5 - shown / 2;
      return cell < start ? cell : cell + 1 - shown;
    };
    this.x = nearest(this.x, this.bodyWidth / this.scaleX, column);
    this.y = nearest(this.y, this.bodyHeight / this.scaleY, row);
    this.settle();
  }

  lines([row, column]) {
    if (row !== null && column !== null) return cellLines(this.head, this.rows, this.columns, row, column);
    const byRow = row !== null;
    const names = byRow ? this.columns : this.rows;
    const best = byRow ? this.head.strongest(row) : this.head.strongestRows(column);
    const own = byRow ? this.rows : this.columns;
    return [[own.name, shown(own.tokens[byRow ? row : column]), byRow ? 'looks at' : 'seen by'],
            ...best.slice(0, 5).map(([index, weight]) => ['', shown(names.tokens[index]), exact(weight)])];
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
    if (!this.head || !this.scaleX || !this.width) return;
    const context = this.context;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    const width = Math.min(this.bodyWidth, (this.head.columns - this.x) * this.scaleX);
    const height = Math.min(this.bodyHeight, (this.head.rows - this.y) * this.scaleY);
    if (width > 0 && height > 0) {
      context.save();
      context.beginPath();
      context.rect(this.left, this.top, width, height);
      context.clip();
      this.tiles.draw(context, width, height);
      drawCellValues(this, context, width, height);
      drawCursor(this, context);
      context.restore();
    }
    drawAxis(this, context, true);
    drawAxis(this, context, false);
    if (!this.isWhole()) drawWhereabouts(this, context, width, height);
    mapDrawn();
  }
}

// Thin gaps between large cells, and the weights in cells that have room for them.
function drawCellValues(matrix, context, width, height) {
  const {scaleX, scaleY, head, left, top} = matrix;
  if (Math.min(scaleX, scaleY) < 9) return;
  const lastRow = Math.min(head.rows, Math.ceil(matrix.y + height / scaleY));
  const lastColumn = Math.min(head.columns, Math.ceil(matrix.x + width / scaleX));
  context.fillStyle = colors.card;
  for (let row = Math.ceil(matrix.y); row <= lastRow; ++row)
    context.fillRect(left, top + (row - matrix.y) * scaleY - 0.5, width, 1);
  for (let column = Math.ceil(matrix.x); column <= lastColumn; ++column)
    context.fillRect(left + (column - matrix.x) * scaleX - 0.5, top, 1, height);
  if (scaleX < 30 || scaleY < 18) return;
  context.font = '11px "DejaVu Sans",Verdana,sans-serif';
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  for (let row = Math.floor(matrix.y); row < lastRow; ++row) {
    for (let column = Math.floor(matrix.x); column < lastColumn; ++column) {
      const {weight} = head.at(row, column);
      const text = weight === undefined ? '' : brief(weight);
      if (!text) continue;
      const at = matrix.pointOf([row, column]);
      context.fillStyle = colors.isLight[codeOf(weight, head.scale) + 128] ? '#1f2328' : '#fff';
      context.fillText(text, at.x, at.y);
    }
  }
}

// The whole map in the corner, and the part of it that is in sight.
function drawWhereabouts(matrix, context, width, height) {
  const {head} = matrix;
  const side = Math.min(matrix.gutter, matrix.top) - 12;
  const longest = Math.max(head.rows * matrix.scaleY, head.columns * matrix.scaleX);
  const x = side / longest * matrix.scaleX, y = side / longest * matrix.scaleY;
  context.imageSmoothingEnabled = true;
  context.drawImage(matrix.overview, 4, 4, Math.max(2, x * head.columns), Math.max(2, y * head.rows));
  context.strokeStyle = colors.mark;
  context.lineWidth = 1.5;
  context.strokeRect(4 + matrix.x * x, 4 + matrix.y * y, Math.max(3, width / matrix.scaleX * x),
                     Math.max(3, height / matrix.scaleY * y));
}

function drawCursor(matrix, context) {
  if (!matrix.cursor) return;
  const {scaleX, scaleY, left, top} = matrix;
  const [row, column] = matrix.cursor;
  const x = left + (column - matrix.x) * scaleX, y = top + (row - matrix.y) * scaleY;
  context.strokeStyle = colors.mark;
  context.globalAlpha = 0.7;
  context.lineWidth = 1;
  context.strokeRect(left, y - 0.5, matrix.head.columns * scaleX, scaleY + 1);
  context.strokeRect(x - 0.5, top, scaleX + 1, matrix.head.rows * scaleY);
  context.globalAlpha = 1;
  context.lineWidth = 2.5;
  const size = Math.max(0, 7 - Math.min(scaleX, scaleY)) / 2;
  context.strokeRect(x - size, y - size, scaleX + 2 * size, scaleY + 2 * size);
}

// 1, 2, 5, 10, ... cells between two labels.
function labelStep(scale, room) {
  for (let step = 1; ; step *= 10)
    for (const factor of [1, 2, 5]) if (step * factor * scale >= room) return step * factor;
}

// Labels are tokens if cells are large enough, otherwise positions. Tokens along the top are vertical if they are wide.
function drawAxis(matrix, context, alongTop) {
  const {left, top} = matrix;
  const scale = alongTop ? matrix.scaleX : matrix.scaleY;
  const offset = alongTop ? matrix.x : matrix.y;
  const list = alongTop ? matrix.columns : matrix.rows;
  const room = alongTop ? matrix.bodyWidth : matrix.bodyHeight;
  const tokens = scale >= readableCell;
  const step = tokens ? 1 : labelStep(scale, alongTop ? 56 : 28);
  const last = Math.min(list.tokens.length, Math.ceil(offset + room / scale));
  context.font = labelFont;
  context.textBaseline = 'middle';
  for (let index = Math.ceil((offset + 1) / step) * step - 1; index < last; index += step) {
    const at = (alongTop ? left : top) + (index + 0.5 - offset) * scale;
    const label = tokens ? matrix.labelOf(list.tokens[index]) : {text: String(index + 1), width: 0};
    const marked = matrix.cursor && matrix.cursor[alongTop ? 1 : 0] === index;
    context.fillStyle = marked ? colors.mark : tokens ? colors.text : colors.soft;
    if (!alongTop) {
      context.textAlign = 'right';
      context.fillText(label.text, left - 7, at, left - 10);
    } else if (!tokens || label.width <= scale - 8) {
      context.textAlign = 'center';
      context.fillText(label.text, at, top - 12);
    } else {
      context.save();
      context.translate(at, top - 7);
      context.rotate(-Math.PI / 2);
      context.textAlign = 'left';
      context.fillText(label.text, 0, 0, top - 10);
      context.restore();
    }
  }
}
