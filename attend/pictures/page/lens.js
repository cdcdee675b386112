// Shows the answer if the layers ended early: a table of layers by positions, the last layer on top.
function makeLensView(host, page) {
  const {layers, columns, cells} = page.lens, {tokens} = page.lists[columns];
  host.append(element('p', {class: 'soft'},
    'Answers of the model if its layers ended early (the logit lens). Each place of the answer shows the most ' +
    'probable token, coloured by its probability. Bold: the token of the answer itself. Early layers are trained to be ' +
    'read by the next, so what they seem to answer may be nonsense.'));
  const head = element('tr', {}, element('th', {scope: 'col'}, 'after'),
                       ...tokens.map(token => element('th', {scope: 'col'}, shown(token))));
  const painted = [];
  const rows = layers.map((layer, row) => element('tr', {}, element('th', {scope: 'row'}, layer),
    ...tokens.map((answer, column) => {
      const {token, probability, own} = cells[row * tokens.length + column];
      const words = `${layer}, place ${column + 1}: ${shown(token)} ${figure(probability)}, ${shown(answer)} ${figure(own)}`;
      const cell = element('td', {title: words, class: token === answer ? 'settled' : ''}, shown(token),
                           element('span', {}, figure(probability)));
      painted.push([cell, codeOf(probability, 1)]);
      return cell;
    })));
  host.append(element('div', {class: 'lens', role: 'region', tabindex: 0, 'aria-label': 'Lens'},
                      element('table', {}, element('thead', {}, head), element('tbody', {}, ...rows.reverse()))));
  const paint = () => {
    for (const [cell, code] of painted) {
      const color = colors.words[code + 128];
      cell.style.backgroundColor = `rgb(${[color & 255, color >>> 8 & 255, color >>> 16 & 255]})`;
      cell.style.color = colors.isLight[code + 128] ? '#000' : '#fff';
    }
    mapDrawn();
  };
  paint();
  return {recolor: paint};
}
