// Shows the weights of each row of a map over a picture. The columns of the map are the parts of the picture.
const panelsAtOnce = 100;
const strongestTint = 0.8;  // the opacity of the largest weight; the picture below remains visible
const weakestTint = 0.01;   // share of the largest weight below which nothing is drawn
const tints = {positive: [255, 138, 31], negative: [47, 141, 255]};

function pictureOf(page, map) {
  return page.lists[map.columns].picture;
}

// Returns the methods and the heads of layers with parts of a picture as columns.
function picturedMaps(page) {
  const isPictured = map => pictureOf(page, map);
  return [
    ...page.methods.filter(isPictured).map(method => ({name: method.name, map: method, about: method.head, method})),
    ...page.maps.filter(isPictured).flatMap(map => map.heads.map(
      (about, number) => ({name: `${map.name}, head ${number + 1}`, map, about}))),
  ];
}

function imageOf(picture) {
  picture.image ||= createImageBitmap(new Blob([bytesOf(picture.png)], {type: 'image/png'}));
  return picture.image;
}

function tintOf(weight, grey) {
  const color = weight < 0 ? tints.negative : tints.positive;
  const plain = 0.3 * color[0] + 0.59 * color[1] + 0.11 * color[2];
  return `rgb(${(grey ? color.map(value => 0.85 * plain + 0.15 * value) : color).map(Math.round)})`;
}

// One row of a map over the picture; without a row only the picture.
class Panel {
  constructor(content, row, width) {
    this.content = content;  // {head, rows, columns, image, grey, name}
    this.row = row;
    this.cursor = null;
    const {columns: {picture}, rows, head} = content;
    const fitting = Math.min(560 / picture.width, 200 / picture.height);
    this.width = Math.min(width, picture.width * (fitting >= 1 ? Math.floor(fitting) : Math.min(1, 960 / picture.width)));
    this.height = this.width * picture.height / picture.width;
    const alone = row === null;
    const label = alone ? content.columns.name : shown(rows.tokens[row]);
    this.canvas = alone
      ? element('canvas', {role: 'img', 'aria-label': label})
      : element('canvas', {
        tabindex: 0, role: 'application', 'aria-roledescription': 'weights over a picture',
        'aria-label': `${content.name}, ${label}: ${head.columns} weights. Arrow keys move from part to part, ` +
          'Enter goes to the strongest.'});
    this.figure = element('figure', {}, element('figcaption', {class: alone ? 'soft' : ''}, label), this.canvas);
    this.canvas.style.width = `${this.width}px`;
    if (!alone) attachPanelControls(this);
    this.draw();
  }

  // The box of a part, in pixels of the canvas.
  boxOf(part) {
    const {picture} = this.content.columns;
    const {width, height} = this.canvas;
    const column = part % picture.columns, row = Math.floor(part / picture.columns);
    const x = Math.round(column * width / picture.columns), y = Math.round(row * height / picture.rows);
    return [x, y, Math.round((column + 1) * width / picture.columns) - x,
            Math.round((row + 1) * height / picture.rows) - y];
  }

  draw() {
    const {canvas, row, content: {head, rows, columns, image, grey}} = this;
    const ratio = Math.min(2, devicePixelRatio || 1);
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(this.height * ratio);
    const context = canvas.getContext('2d');
    context.imageSmoothingEnabled = canvas.width < image.width;
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    if (row === null) return;
    for (let part = 0; part < head.columns; ++part) {
      const {weight} = head.at(row, part);
      const share = Math.abs(weight) / head.scale;
      if (!(share >= weakestTint)) continue;
      context.globalAlpha = strongestTint * Math.min(1, share);
      context.fillStyle = tintOf(weight, grey);
      context.fillRect(...this.boxOf(part));
    }
    context.globalAlpha = 1;
    // If the parts of the picture attend to each other, outlines the query.
    if (rows === columns) this.outline(context, row, colors.on, ratio);
    if (this.cursor !== null) this.outline(context, this.cursor, colors.mark, 2 * ratio);
  }

  outline(context, part, color, lineWidth) {
    const [x, y, width, height] = this.boxOf(part);
    context.strokeStyle = color;
    context.lineWidth = lineWidth;
    context.strokeRect(x + lineWidth / 2, y + lineWidth / 2, width - lineWidth, height - lineWidth);
  }

  choose(part) {
    this.cursor = part;
    this.draw();
  }

  lines() {
    const {head, rows, columns} = this.content;
    return cellLines(head, rows, columns, this.row, this.cursor);
  }
}

// Returns the part that a key leads to; null for other keys.
function partAfter({cursor, row, content: {head, columns: {picture}}}, key) {
  if (key === 'Enter') return (head.strongest(row)[0] || [cursor || 0])[0];
  const step = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -picture.columns, ArrowDown: picture.columns,
                Home: -head.columns, End: head.columns}[key];
  if (!step) return null;
  if (cursor === null) return 0;
  const next = cursor + step;
  if (Math.abs(step) === head.columns) return clamp(next, 0, head.columns - 1);
  return next >= 0 && next < head.columns ? next : cursor;
}

function attachPanelControls(panel) {
  const {canvas} = panel;
  const leave = () => {
    hush();
    if (panel.cursor !== null) panel.choose(null);
  };
  canvas.addEventListener('pointermove', event => {
    const at = pointIn(canvas, event), box = canvas.getBoundingClientRect();
    const {picture} = panel.content.columns;
    const column = clamp(Math.floor(at.x / box.width * picture.columns), 0, picture.columns - 1);
    const row = clamp(Math.floor(at.y / box.height * picture.rows), 0, picture.rows - 1);
    panel.choose(row * picture.columns + column);
    tell(panel.lines(), event.clientX, event.clientY);
  });
  canvas.addEventListener('pointerleave', leave);
  canvas.addEventListener('blur', leave);
  canvas.addEventListener('keydown', event => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === 'Escape') return leave();
    const part = partAfter(panel, event.key);
    if (part === null) return;
    event.preventDefault();
    panel.choose(part);
    const lines = panel.lines(), box = canvas.getBoundingClientRect();
    const [x, y, width, height] = panel.boxOf(part).map(pixels => pixels * box.width / canvas.width);
    tell(lines, box.left + x + width, box.top + y + height);
    say(lines);
  });
}

function panelRange(rows, first) {
  return `${first + 1} to ${Math.min(rows, first + panelsAtOnce)} of ${rows}`;
}

function makePictureView(host, page) {
  const maps = picturedMaps(page);
  const chosenHere = {map: 0, first: 0};
  const bar = element('div', {class: 'bar'});
  const failed = element('p', {class: 'failed'});
  const panels = element('div', {class: 'panels'});
  const caption = element('p', {class: 'soft'});
  const card = element('section', {class: 'card', 'aria-label': 'Evidence card'});
  const beside = element('div', {class: 'beside'}, element('div', {}, failed, panels, caption), card);
  host.append(bar, beside);
  let drawn = [];
  const show = async () => {
    const {name, map, about, method} = maps[chosenHere.map];
    const [image, head] = await Promise.all([imageOf(pictureOf(page, map)), loadHead(page, about)]);
    if (maps[chosenHere.map].about !== about) return;
    const misses = method ? failures(method) : [];
    showFailures(failed, misses);
    card.hidden = !method;
    beside.classList.toggle('alone', !method);
    if (method) card.replaceChildren(...cardParts(method));
    const content = {head, image, name, rows: page.lists[map.rows], columns: page.lists[map.columns],
                   grey: misses.length > 0};
    const rows = Array.from({length: Math.min(panelsAtOnce, head.rows - chosenHere.first)}, (_, i) => chosenHere.first + i);
    drawn = [null, ...rows].map(row => new Panel(content, row, panels.clientWidth));
    panels.replaceChildren(...drawn.map(panel => panel.figure));
    const signed = head.codes.some(code => code < 0 && code > -128);
    caption.textContent = `The strongest colour is a weight of ${figure(head.scale)}` +
      `${signed ? '; orange speaks for the answer, blue against it' : ''}.` +
      `${head.whole ? '' : ` Only the ${head.kept} largest weights of each row are drawn.`}`;
    mapDrawn();
  };
  const change = () => show().catch(complain);
  const range = selector('Rows', [], 0, index => {
    chosenHere.first = index * panelsAtOnce;
    change();
  });
  const fillRange = () => {
    const {rows} = maps[chosenHere.map].about;
    const starts = Array.from({length: Math.ceil(rows / panelsAtOnce)}, (_, i) => i * panelsAtOnce);
    range.select.replaceChildren(...starts.map((first, index) => element('option', {value: index}, panelRange(rows, first))));
    range.label.hidden = starts.length < 2;
    chosenHere.first = 0;
  };
  const choice = selector('Map', maps.map(map => map.name), 0, index => {
    chosenHere.map = index;
    fillRange();
    change();
  });
  bar.append(choice.label, range.label);
  fillRange();
  return {recolor: () => drawn.forEach(panel => panel.draw()), show: change};
}
