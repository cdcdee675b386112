// Pointer, wheel and keys of a matrix.
function attachMatrixControls(matrix) {
  const {canvas} = matrix;
  attachPointers(matrix);
  canvas.addEventListener('wheel', event => matrixWheel(matrix, event), {passive: false});
  canvas.addEventListener('keydown', event => matrixKey(matrix, event));
  canvas.addEventListener('blur', hush);
  canvas.addEventListener('pointerleave', hush);
}

function pointIn(canvas, event) {
  const box = canvas.getBoundingClientRect();
  return {x: event.clientX - box.left, y: event.clientY - box.top};
}

// One pointer pans and two pinch; a tap or a mouse that hovers shows the weight.
function attachPointers(matrix) {
  const {canvas} = matrix;
  const pointers = new Map();
  let travelled = 0;
  canvas.addEventListener('pointerdown', event => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, pointIn(canvas, event));
    travelled = 0;
    hush();
  });
  canvas.addEventListener('pointermove', event => {
    const now = pointIn(canvas, event), before = pointers.get(event.pointerId);
    if (!matrix.head) return;
    if (!before) {
      hoverMatrix(matrix, event);
      return;
    }
    travelled += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    pointers.set(event.pointerId, now);
    if (!others.length) return matrix.pan(before.x - now.x, before.y - now.y);
    const [other] = others;
    const distance = point => Math.max(10, Math.hypot(point.x - other.x, point.y - other.y));
    matrix.zoom(distance(now) / distance(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
    matrix.pan((before.x - now.x) / 2, (before.y - now.y) / 2);
  });
  canvas.addEventListener('pointerup', event => {
    pointers.delete(event.pointerId);
    if (travelled >= 6 || !matrix.head) return;
    const cell = hoverMatrix(matrix, event);
    if (cell) matrix.choose?.(cell);
  });
  canvas.addEventListener('pointercancel', event => pointers.delete(event.pointerId));
}

// Returns the cell at the pointer, or null.
function hoverMatrix(matrix, event) {
  const at = pointIn(matrix.canvas, event);
  const cell = matrix.cellAt(at.x, at.y);
  if (cell[0] === null && cell[1] === null) {
    hush();
    return null;
  }
  tell(matrix.lines(cell), event.clientX, event.clientY);
  if (cell[0] === null || cell[1] === null) return null;
  matrix.cursor = cell;
  matrix.request();
  return cell;
}

// A map that can be read as a whole leaves the wheel to the page.
function matrixWheel(matrix, event) {
  if (!matrix.head) return;
  const readable = Math.min(...matrix.fitScales()) >= readableCell;
  if (readable && matrix.isWhole() && !event.ctrlKey) return;
  event.preventDefault();
  const unit = event.deltaMode === 1 ? 20 : 1;
  const x = event.deltaX * unit, y = event.deltaY * unit;
  if (event.shiftKey || Math.abs(x) > Math.abs(y)) return matrix.pan(event.shiftKey && !x ? y : x, 0);
  const at = pointIn(matrix.canvas, event);
  matrix.zoom(Math.exp(-clamp(y, -200, 200) * (event.ctrlKey ? 0.01 : 0.002)), at.x, at.y);
}

// Returns the cell that a key leads to; null for other keys.
function cellAfter(matrix, [row, column], key) {
  const page = Math.max(1, Math.floor(matrix.bodyHeight / matrix.scaleY) - 1);
  const steps = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
                 PageUp: [-page, 0], PageDown: [page, 0], Home: [0, -column],
                 End: [0, matrix.head.columns]};
  const step = steps[key];
  if (key === 'Enter') {
    const [best] = matrix.head.strongest(row);
    return best ? [row, best[0]] : [row, column];
  }
  return step && [clamp(row + step[0], 0, matrix.head.rows - 1), clamp(column + step[1], 0, matrix.head.columns - 1)];
}

function matrixKey(matrix, event) {
  const {head, canvas} = matrix;
  if (event.ctrlKey || event.altKey || event.metaKey || !head || !head.rows || !head.columns) return;
  const zooms = {'+': 2, '=': 2, '-': 0.5};
  if (event.key === 'Escape') {
    matrix.cursor = null;
    matrix.request();
    return hush();
  }
  if (event.key === ' ' && matrix.choose && matrix.cursor) {
    event.preventDefault();
    return matrix.choose(matrix.cursor);
  }
  if (zooms[event.key]) matrix.zoomAtCentre(zooms[event.key]);
  else if (event.key === '0') matrix.fit();
  const start = matrix.cursor || [Math.floor(matrix.y), Math.floor(matrix.x)];
  const first = !matrix.cursor && event.key.startsWith('Arrow');
  const cell = first ? start : cellAfter(matrix, start, event.key);
  if (!cell && !zooms[event.key] && event.key !== '0') return;
  event.preventDefault();
  if (!cell) return;
  matrix.cursor = cell;
  matrix.reveal(cell);
  const lines = matrix.lines(cell);
  const at = matrix.pointOf(cell), box = canvas.getBoundingClientRect();
  tell(lines, box.left + at.x + matrix.scaleX / 2, box.top + at.y + matrix.scaleY / 2);
  say(lines);
}
