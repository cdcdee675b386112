// The cells of a matrix as images of 256 x 256 pixels. A pixel is one cell or, after zooming out, the largest of 2 x 2,
// 4 x 4, ... cells. A frame makes tiles for `tileTime` milliseconds and draws missing tiles from the overview.
const tileSide = 256;
const tilesHeld = 128;
const tileTime = 7;

class Tiles {
  constructor(matrix) {
    this.matrix = matrix;
    this.made = new Map();
    this.free = [];
    this.codes = new Int8Array(tileSide * tileSide);
  }

  clear() {
    this.free.push(...this.made.values());
    this.made.clear();
  }

  draw(context, width, height) {
    const {matrix} = this;
    if (!this.needed()) return this.drawOverview(context, width, height);
    const scale = Math.max(matrix.scaleX, matrix.scaleY) * matrix.ratio;
    const cells = 2 ** Math.max(0, -Math.ceil(Math.log2(scale)));
    const span = tileSide * cells;
    const begun = performance.now();
    const found = [];
    let missing = false;
    for (let i = Math.floor(matrix.y / span); i * span < matrix.y + height / matrix.scaleY; ++i) {
      for (let j = Math.floor(matrix.x / span); j * span < matrix.x + width / matrix.scaleX; ++j) {
        const tile = this.tile(i, j, cells, performance.now() - begun < tileTime);
        if (tile) found.push([tile, i * span, j * span]);
        else missing = true;
      }
    }
    if (missing) {
      this.drawOverview(context, width, height);
      matrix.request();
    }
    context.imageSmoothingEnabled = scale * cells < 1;
    for (const [tile, row, column] of found) this.drawTile(context, tile, row, column, span);
  }

  // Returns false if the overview has all cells, or about one pixel or more for each pixel of the screen.
  needed() {
    const {head, scaleX, scaleY, ratio} = this.matrix;
    const {rows, columns} = head.overview;
    if (rows === head.rows && columns === head.columns) return false;
    return scaleX * head.columns * ratio > 1.3 * columns || scaleY * head.rows * ratio > 1.3 * rows;
  }

  drawOverview(context, width, height) {
    const {matrix} = this;
    const {rows, columns} = matrix.head.overview;
    const perColumn = columns / matrix.head.columns, perRow = rows / matrix.head.rows;
    context.imageSmoothingEnabled = matrix.scaleX / perColumn < 1 || matrix.scaleY / perRow < 1;
    context.drawImage(matrix.overview, matrix.x * perColumn, matrix.y * perRow,
                      width / matrix.scaleX * perColumn, height / matrix.scaleY * perRow,
                      matrix.left, matrix.top, width, height);
  }

  drawTile(context, tile, row, column, span) {
    const {matrix} = this;
    const edge = value => Math.round(value * matrix.ratio) / matrix.ratio;
    const x = edge(matrix.left + (column - matrix.x) * matrix.scaleX);
    const y = edge(matrix.top + (row - matrix.y) * matrix.scaleY);
    context.drawImage(tile, x, y, edge(matrix.left + (column + span - matrix.x) * matrix.scaleX) - x,
                      edge(matrix.top + (row + span - matrix.y) * matrix.scaleY) - y);
  }

  tile(i, j, cells, make) {
    const key = `${cells}/${i}/${j}`;
    let tile = this.made.get(key);
    if (tile) {
      this.made.delete(key);  // the last used are last
    } else {
      if (!make) return null;
      tile = this.paint(i * tileSide * cells, j * tileSide * cells, cells);
    }
    this.made.set(key, tile);
    return tile;
  }

  paint(firstRow, firstColumn, cells) {
    if (this.made.size >= tilesHeld) {
      const [key, oldest] = this.made.entries().next().value;
      this.made.delete(key);
      this.free.push(oldest);
    }
    this.codes.fill(0);
    if (this.matrix.head.whole) this.gather(firstRow, firstColumn, cells);
    else this.scatter(firstRow, firstColumn, cells);
    const canvas = this.free.pop() || document.createElement('canvas');
    return paintCodes(canvas, this.codes, tileSide, tileSide, this.matrix.words);
  }

  gather(firstRow, firstColumn, cells) {
    const {head} = this.matrix;
    const shift = Math.log2(cells);
    const lastRow = Math.min(head.rows, firstRow + tileSide * cells);
    const lastColumn = Math.min(head.columns, firstColumn + tileSide * cells);
    for (let row = firstRow; row < lastRow; ++row) {
      const start = (row - firstRow >> shift) * tileSide;
      for (let column = firstColumn; column < lastColumn; ++column)
        this.put(start + (column - firstColumn >> shift), head.codes[row * head.columns + column]);
    }
  }

  scatter(firstRow, firstColumn, cells) {
    const {head} = this.matrix;
    const shift = Math.log2(cells);
    const lastRow = Math.min(head.rows, firstRow + tileSide * cells);
    const span = tileSide * cells;
    for (let row = firstRow; row < lastRow; ++row) {
      const start = (row - firstRow >> shift) * tileSide;
      for (let i = row * head.kept; i < (row + 1) * head.kept; ++i) {
        const column = head.keptColumns[i] - firstColumn;
        if (column >= 0 && column < span) this.put(start + (column >> shift), head.codes[i]);
      }
    }
  }

  put(to, code) {
    if (strength(code) > strength(this.codes[to])) this.codes[to] = code;
  }
}
