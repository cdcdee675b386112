// Shows the origins of each target token by one method at a time, with the evidence for it.
function makeMethodsView(host, page, prefix) {
  const choice = element('fieldset', {class: 'choice'}, element('legend', {}, 'Method'));
  const failed = element('p', {class: 'failed'});
  const bar = element('div', {class: 'bar'});
  const left = element('div', {}, failed, bar);
  const card = element('section', {class: 'card', 'aria-label': 'Evidence card'});
  host.append(choice, element('div', {class: 'beside'}, left, card));
  const matrix = new Matrix(left, 'Alignment');
  bar.append(matrix.buttons());
  let latest = 0;
  const choose = async index => {
    latest = index;
    const method = page.methods[index];
    const misses = failures(method);
    showFailures(failed, misses);
    card.replaceChildren(...cardParts(method));
    const head = await loadHead(page, method.head);
    if (latest !== index) return;
    matrix.show(head, page.lists[method.rows], page.lists[method.columns],
                {grey: misses.length > 0, name: `Alignment by ${method.name}`});
  };
  page.methods.forEach((method, index) => {
    const input = element('input', {type: 'radio', name: prefix + 'method'});
    input.checked = index === 0;
    input.addEventListener('change', () => choose(index).catch(complain));
    const [sign, kind, words] = verdictSign(method);
    choice.append(element('label', {}, input, method.name,
                          element('span', {class: kind, role: 'img', 'aria-label': words}, sign)));
  });
  choose(0).catch(complain);
  return {recolor: () => matrix.recolor()};
}

function failures(method) {
  return method.card.filter(entry => !entry.passed);
}

function showFailures(line, misses) {
  line.textContent = misses.length ? `Do not rely on this map: it fails ${listed(misses.map(entry => `“${entry.name}”`))}.` : '';
  line.hidden = !misses.length;
}

function verdictSign(method) {
  const made = method.card.filter(entry => !entry.missing);
  if (!made.length) return ['?', 'soft', 'not tested'];
  return made.every(entry => entry.passed) ? ['✓', 'good', 'passes its tests'] : ['✗', 'bad', 'fails a test'];
}

function listed(names) {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

function cardParts(method) {
  const made = method.card.filter(entry => !entry.missing);
  const passed = made.filter(entry => entry.passed).length;
  const verdict = made.length
    ? `${passed} of ${made.length} tests passed.`
    : 'This method was not tested here: nothing says that its map can be relied on.';
  const list = element('ul');
  for (const entry of method.card) {
    const interval = entry.interval
      ? ` (95 %: ${figure(entry.interval[0])} to ${figure(entry.interval[1])})` : '';
    list.append(element('li', {},
      element('div', {class: 'value'}, element('strong', {}, entry.name),
              entry.missing ? element('span', {class: 'soft'}, 'not computed')
                : element('span', {class: entry.passed ? 'good' : 'bad'}, entry.passed ? 'passed' : 'failed')),
      element('div', {class: 'value'}, entry.missing || figure(entry.value) + interval),
      element('p', {class: 'soft'}, entry.bar ? `${entry.meaning} It passes if the value is ${entry.bar}.` : entry.meaning)));
  }
  return [element('h2', {}, method.name), element('p', {class: 'soft'}, method.meaning),
          element('p', {}, verdict), list];
}
