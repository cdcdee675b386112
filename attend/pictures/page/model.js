// Shows the heads of all layers as thumbnails; a click opens one as a matrix. `parts` is optional. It has an element
// `above` the thumbnails and a function that returns the elements `below` a head.
async function makeModelView(host, page, open, parts) {
  if (parts) host.append(parts.above);
  host.append(element('p', {class: 'soft'},
    'Each picture is one head, coloured up to its own largest weight. Choose one to see its matrix. ' +
    'A head that has half of its weights or more on the keys of a pattern has its name, and that share.'));
  const thumbnails = await unpackThumbnails(page);
  const most = Math.max(...page.maps.map(map => map.heads.length));
  const one = page.maps.length === 1;
  if (!one) {
    const numbers = element('div', {class: 'heads numbers', style: `--heads:${most}`});
    for (let number = 1; number <= most; ++number) numbers.append(element('span', {}, String(number)));
    host.append(element('div', {class: 'layer', 'aria-hidden': 'true'}, element('span'), numbers));
  }
  const pictures = [];
  page.maps.forEach((map, layer) => {
    const heads = element('div', {class: one ? 'heads one' : 'heads', style: `--heads:${most}`});
    map.heads.forEach((about, number) => {
      const canvas = element('canvas', {'aria-hidden': 'true'});
      const button = element('button', {
        type: 'button', title: `${map.name}, head ${number + 1}${about.note ? `: ${about.note}` : ''}`,
        'aria-label': `${map.name}, head ${number + 1}: largest weight ${exact(Math.fround(about.scale))}` +
                      (about.note ? `, ${about.note}` : ''),
      }, canvas);
      button.addEventListener('click', () => open(layer, number));
      const name = about.note ? [element('span', {class: 'does'}, about.note)] : [];
      heads.append(element('div', {}, button, ...name, ...(parts && map.key ? parts.below(map, number) : [])));
      pictures.push([canvas, thumbnails[about.block]]);
    });
    host.append(element('div', {class: 'layer'}, element('h3', {}, map.name), heads));
  });
  const paint = () => {
    for (const [canvas, {codes, rows, columns}] of pictures) {
      paintCodes(canvas, codes, rows, columns, colors.words);
      canvas.classList.toggle('smooth', Math.max(rows, columns) > 24);
    }
    mapDrawn();
  };
  paint();
  return {recolor: paint};
}

// By block.
async function unpackThumbnails(page) {
  const bytes = await unpack(await page.read('thumbnails'));
  const abouts = [...page.methods.map(method => method.head), ...page.maps.flatMap(map => map.heads)];
  let start = bytes.byteOffset;
  return abouts.map(about => {
    const side = size => Math.min(size, page.thumbnail);
    const rows = side(about.kept ? about.pooledRows : about.rows);
    const columns = side(about.kept ? about.pooledColumns : about.columns);
    const codes = new Int8Array(bytes.buffer, start, rows * columns);
    start += rows * columns;
    return {rows, columns, codes};
  });
}
