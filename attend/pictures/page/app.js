// The views and what is chosen in them.
const hasMethods = page.methods.length > 0;
const hasMaps = page.maps.some(map => map.heads.length > 0);
const hasPicture = [...page.methods, ...page.maps].some(pictureOf);
const views = {
  picture: {name: 'Picture', there: hasPicture, make: makePictureView},
  alignment: {name: 'Alignment', there: hasMethods, make: host => makeMethodsView(host)},
  model: {name: 'Model', there: hasMaps, make: host => makeModelView(host, openMatrix)},
  heads: {name: 'Heads', there: hasMaps, make: makeHeadsView},
  matrix: {name: 'Matrix', there: hasMaps, make: makeMatrixView},
};
const chosen = {map: Math.max(0, page.maps.findIndex(map => map.heads.length > 0)), head: 0};

// A list to choose from, with its label.
function selector(label, names, value, change) {
  const select = element('select', {}, ...names.map((name, index) => element('option', {value: index}, name)));
  select.value = value;
  select.addEventListener('change', () => change(Number(select.value)));
  return {label: element('label', {}, label, select), select};
}

function mapSelector(change) {
  return selector('Layer', page.maps.map(map => map.name), chosen.map, change);
}

function fillHeads(select) {
  const {heads} = page.maps[chosen.map];
  select.replaceChildren(...heads.map((_, index) => element('option', {value: index}, `head ${index + 1}`)));
  chosen.head = clamp(chosen.head, 0, heads.length - 1);
  select.value = chosen.head;
}

function makeMatrixView(host) {
  const bar = element('div', {class: 'bar'});
  host.append(bar);
  const matrix = new Matrix(host, 'Weights');
  const head = selector('Head', [], 0, index => {
    chosen.head = index;
    show();
  });
  const map = mapSelector(index => {
    chosen.map = index;
    show();
  });
  const show = () => {
    map.select.value = chosen.map;
    fillHeads(head.select);
    const at = page.maps[chosen.map], about = at.heads[chosen.head];
    if (!about) return;
    loadHead(about).then(loaded => {
      if (page.maps[chosen.map].heads[chosen.head] !== about) return;
      matrix.show(loaded, page.lists[at.rows], page.lists[at.columns],
                  {name: `${at.name}, head ${chosen.head + 1}`});
    }).catch(complain);
  };
  bar.append(map.label, head.label, matrix.buttons());
  return {matrix, recolor: () => matrix.recolor(), show};
}

function makeHeadsView(host) {
  const bar = element('div', {class: 'bar'});
  const chips = element('div', {class: 'bar chips', role: 'group', 'aria-label': 'Heads'});
  host.append(bar, chips);
  const lines = new Lines(host);
  const pressed = new Map();  // by map, the heads that are drawn
  const heads = () => {
    const {heads: all} = page.maps[chosen.map];
    if (!pressed.has(chosen.map)) pressed.set(chosen.map, new Set(all.slice(0, 4).keys()));
    return pressed.get(chosen.map);
  };
  const draw = async () => {
    const at = page.maps[chosen.map];
    const numbers = [...heads()].sort((a, b) => a - b);
    const loaded = await Promise.all(numbers.map(number => loadHead(at.heads[number])));
    if (page.maps[chosen.map] !== at) return;
    lines.show(loaded.map((head, index) => ({head, number: numbers[index]})),
               page.lists[at.rows], page.lists[at.columns], at.name);
  };
  const show = () => {
    map.select.value = chosen.map;
    chips.replaceChildren(...chipsOf(page.maps[chosen.map].heads.length, heads(), () => draw().catch(complain)));
    draw().catch(complain);
  };
  const map = mapSelector(index => {
    chosen.map = index;
    show();
  });
  bar.append(map.label);
  return {recolor: show, show};
}

// A button a head, and one for all of them.
function chipsOf(count, heads, changed) {
  const chips = Array.from({length: count}, (_, number) => {
    const chip = element('button', {type: 'button', class: 'chip', style: `--dot:${headColor(number)}`,
                                    'aria-pressed': heads.has(number), 'aria-label': `Head ${number + 1}`},
                         String(number + 1));
    chip.addEventListener('click', () => {
      if (!heads.delete(number)) heads.add(number);
      chip.setAttribute('aria-pressed', heads.has(number));
      changed();
    });
    return chip;
  });
  if (count < 2) return chips;
  const all = element('button', {type: 'button'}, 'All or none');
  all.addEventListener('click', () => {
    const every = heads.size === count;
    heads.clear();
    if (!every) for (let number = 0; number < count; ++number) heads.add(number);
    chips.forEach((chip, number) => chip.setAttribute('aria-pressed', heads.has(number)));
    changed();
  });
  return [...chips, all];
}

function openMatrix(map, head) {
  Object.assign(chosen, {map, head});
  showView('matrix');
  part('tab-matrix').focus();
}

// Views are made when they are first shown.
function showView(name) {
  hush();
  for (const [other, view] of Object.entries(views)) {
    if (!view.there) continue;
    const tab = part('tab-' + other);
    tab.setAttribute('aria-selected', other === name);
    tab.tabIndex = other === name ? 0 : -1;
    part('view-' + other).hidden = other !== name;
  }
  history.replaceState(null, '', '#' + name);
  const view = views[name];
  if (!view.made) view.made = Promise.resolve(view.make(part('view-' + name)));
  view.made.then(made => made.show && made.show()).catch(complain);
}

function makeTabs() {
  const there = Object.entries(views).filter(([, view]) => view.there);
  there.forEach(([name, view], index) => {
    const tab = element('button', {type: 'button', role: 'tab', id: 'tab-' + name, 'aria-controls': 'view-' + name}, view.name);
    tab.addEventListener('click', () => showView(name));
    tab.addEventListener('keydown', event => {
      const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (!step) return;
      const [next] = there[(index + step + there.length) % there.length];
      showView(next);
      part('tab-' + next).focus();
    });
    part('tabs').append(tab);
    part('main').append(element('section', {id: 'view-' + name, role: 'tabpanel', 'aria-labelledby': 'tab-' + name, hidden: ''}));
  });
  return there.map(([name]) => name);
}

function begin() {
  readColors();
  part('title').textContent = page.title;
  part('note').textContent = page.note;
  const names = makeTabs();
  if (!names.length) {
    part('tabs').hidden = true;
    part('main').append(element('p', {}, 'This page holds no map.'));
    return;
  }
  const asked = location.hash.slice(1);
  showView(names.includes(asked) ? asked : names[0]);
  darkScheme.addEventListener('change', () => {
    readColors();
    for (const view of Object.values(views)) if (view.made) view.made.then(made => made.recolor && made.recolor());
  });
}

begin();
