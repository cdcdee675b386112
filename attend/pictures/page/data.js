'use strict';
// A page is the result of page_texts() in map_page.cpp with a function read(block). This function returns a promise of
// the text of a block of data. `block` is the number of a map, or 'thumbnails'.

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function unpack(text) {
  const bytes = bytesOf(text);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Reads floats from four planes, one per byte of a float.
function floatsOf(bytes, start, count) {
  const floats = new Float32Array(count);
  const target = new Uint8Array(floats.buffer);
  for (let plane = 0; plane < 4; ++plane) {
    const from = start + plane * count;
    for (let i = 0, to = plane; i < count; ++i, to += 4) target[to] = bytes[from + i];
  }
  return floats;
}

function columnsOf(bytes, rows, kept) {
  const count = rows * kept;
  const columns = new Uint32Array(count);
  for (let row = 0, i = 0; row < rows; ++row) {
    for (let k = 0, column = 0; k < kept; ++k, ++i) {
      column += bytes[i] | bytes[count + i] << 8 | bytes[2 * count + i] << 16;
      columns[i] = column;
    }
  }
  return columns;
}

// A weight in one signed byte, for pictures; as the writer of the page does it.
function codeOf(weight, scale) {
  if (!Number.isFinite(weight)) return -128;
  if (weight === 0) return 0;
  const code = Math.ceil(127 * Math.min(1, Math.sqrt(Math.abs(weight) / scale)));
  return weight < 0 ? -code : code;
}

function strength(code) {
  return code < 0 ? -code : code;
}

// One map: all weights, or the largest of each row and an overview.
class Head {
  constructor(about, bytes) {
    this.rows = about.rows;
    this.columns = about.columns;
    this.kept = about.kept;
    this.scale = about.scale;
    this.whole = about.kept === 0;
    const count = this.rows * (this.whole ? this.columns : this.kept);
    if (!this.whole) this.keptColumns = columnsOf(bytes, this.rows, this.kept);
    this.weights = floatsOf(bytes, this.whole ? 0 : 3 * count, count);
    this.codes = new Int8Array(count);
    for (let i = 0; i < count; ++i) this.codes[i] = codeOf(this.weights[i], this.scale);
    this.overview = this.whole ? this.pool(512) : {
      rows: about.pooledRows, columns: about.pooledColumns,
      codes: new Int8Array(bytes.buffer, bytes.byteOffset + 7 * count, about.pooledRows * about.pooledColumns),
    };
    this.rowLists = new Map();
  }

  get bytes() {
    return (this.whole ? 5 : 9) * this.codes.length + this.overview.codes.length;
  }

  pool(side) {
    const rows = Math.min(side, this.rows), columns = Math.min(side, this.columns);
    if (rows === this.rows && columns === this.columns) return {rows, columns, codes: this.codes};
    const codes = new Int8Array(rows * columns);
    for (let row = 0, i = 0; row < this.rows; ++row) {
      const start = Math.floor(row * rows / this.rows) * columns;
      for (let column = 0; column < this.columns; ++column, ++i) {
        const to = start + Math.floor(column * columns / this.columns);
        if (strength(this.codes[i]) > strength(codes[to])) codes[to] = this.codes[i];
      }
    }
    return {rows, columns, codes};
  }

  // Returns {weight}, or {bound} if the page lacks the weight: its magnitude is at most `bound`.
  at(row, column) {
    if (this.whole) return {weight: this.weights[row * this.columns + column]};
    let bound = Infinity;
    for (let i = row * this.kept; i < (row + 1) * this.kept; ++i) {
      if (this.keptColumns[i] === column) return {weight: this.weights[i]};
      const weight = Math.abs(this.weights[i]);
      if (weight < bound) bound = weight;
    }
    return bound === 0 ? {weight: 0} : {bound};
  }

  // [column, weight] of the largest weights of a row, falling.
  strongest(row) {
    let list = this.rowLists.get(row);
    if (list) return list;
    const width = this.whole ? this.columns : this.kept;
    list = [];
    for (let k = 0, i = row * width; k < width; ++k, ++i) {
      const weight = this.weights[i];
      if (weight !== 0 && Number.isFinite(weight)) list.push([this.whole ? k : this.keptColumns[i], weight]);
    }
    list.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    list.length = Math.min(list.length, 16);
    if (this.rowLists.size > 400) this.rowLists.clear();
    this.rowLists.set(row, list);
    return list;
  }

  // [row, weight] of the largest weights held of a column, falling.
  strongestRows(column) {
    const list = [];
    for (let row = 0; row < this.rows; ++row) {
      const {weight} = this.at(row, column);
      if (weight && Number.isFinite(weight)) list.push([row, weight]);
    }
    return list.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 16);
  }
}

// The heads that were used last stay decoded, up to `decodedBytes`.
const decoded = new Map();
const decodedBytes = 96 * 1024 * 1024;

async function decodeHead(page, about) {
  return new Head(about, await unpack(await page.read(about.block)));
}

async function loadHead(page, about) {
  const known = decoded.get(about);
  const promise = known || decodeHead(page, about);
  decoded.delete(about);
  decoded.set(about, promise);
  const head = await promise;
  promise.bytes = head.bytes;
  let sum = 0;
  for (const [other, its] of [...decoded].reverse()) {
    sum += its.bytes || 0;
    if (sum > decodedBytes && other !== about) decoded.delete(other);
  }
  return head;
}
