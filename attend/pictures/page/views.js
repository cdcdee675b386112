// The views of an explanation, the tabs that lead to them, and what is chosen in them.
class Explanation {
  // `tabs` and `main` are elements to fill. Ids begin with `prefix`, which is unique in a document.
  // `changed` is called with the name of a view that is shown; `parts` is for makeModelView(). `cells`, if any, shows a
  // chosen cell of a matrix: an element with show(map, head, cell), and keep(map, head), which hides other heads' cells.
  constructor(page, tabs, main, {prefix = '', changed = () => {}, parts = null, cells = null} = {}) {
    Object.assign(this, {page, tabs, main, prefix, changed, cells});
    this.chosen = {map: Math.max(0, page.maps.findIndex(map => map.heads.length > 0)), head: 0};
    const hasMaps = page.maps.some(map => map.heads.length > 0);
    const hasPicture = [...page.methods, ...page.maps].some(map => pictureOf(page, map));
    this.views = {
      picture: {name: 'Picture', there: hasPicture, make: host => makePictureView(host, page)},
      alignment: {name: 'Alignment', there: page.methods.length > 0, make: host => makeMethodsView(host, page, prefix)},
      model: {name: 'Model', there: hasMaps,
              make: host => makeModelView(host, page, (map, head) => this.openMatrix(map, head), parts)},
      heads: {name: 'Heads', there: hasMaps, make: host => makeHeadsView(host, this)},
      matrix: {name: 'Matrix', there: hasMaps, make: host => makeMatrixView(host, this)},
      lens: {name: 'Lens', there: Boolean(page.lens), make: host => makeLensView(host, page)},
    };
    this.makeTabs();
  }

  get names() {
    return Object.keys(this.views).filter(name => this.views[name].there);
  }

  tab(name) {
    return part(`${this.prefix}tab-${name}`);
  }

  panel(name) {
    return part(`${this.prefix}view-${name}`);
  }

  makeTabs() {
    const {names, prefix} = this;
    this.tabs.hidden = !names.length;
    if (!names.length) this.main.append(element('p', {}, 'This page holds no map.'));
    names.forEach((name, index) => {
      const tab = element('button', {type: 'button', role: 'tab', id: `${prefix}tab-${name}`,
                                     'aria-controls': `${prefix}view-${name}`}, this.views[name].name);
      tab.addEventListener('click', () => this.show(name));
      tab.addEventListener('keydown', event => {
        const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
        if (!step) return;
        const next = names[(index + step + names.length) % names.length];
        this.show(next);
        this.tab(next).focus();
      });
      this.tabs.append(tab);
      this.main.append(element('section', {id: `${prefix}view-${name}`, role: 'tabpanel',
                                           'aria-labelledby': `${prefix}tab-${name}`, hidden: ''}));
    });
  }

  // Shows the view of that name, or the first if the name is unknown. Views are made when they are first shown.
  show(asked) {
    const {names} = this;
    if (!names.length) return;
    const name = names.includes(asked) ? asked : names[0];
    hush();
    for (const other of names) {
      this.tab(other).setAttribute('aria-selected', other === name);
      this.tab(other).tabIndex = other === name ? 0 : -1;
      this.panel(other).hidden = other !== name;
    }
    this.changed(name);
    const view = this.views[name];
    if (!view.made) view.made = Promise.resolve(view.make(this.panel(name)));
    view.made.then(made => made.show && made.show()).catch(complain);
  }

  openMatrix(map, head) {
    Object.assign(this.chosen, {map, head});
    this.show('matrix');
    this.tab('matrix').focus();
  }

  recolor() {
    for (const view of Object.values(this.views)) if (view.made) view.made.then(made => made.recolor && made.recolor());
  }
}

// A list to choose from, with its label.
function selector(label, names, value, change) {
  const select = element('select', {}, ...names.map((name, index) => element('option', {value: index}, name)));
  select.value = value;
  select.addEventListener('change', () => change(Number(select.value)));
  return {label: element('label', {}, label, select), select};
}

function mapSelector({page, chosen}, change) {
  return selector('Layer', page.maps.map(map => map.name), chosen.map, change);
}

function fillHeads(select, {page, chosen}) {
  const {heads} = page.maps[chosen.map];
  select.replaceChildren(...heads.map((_, index) => element('option', {value: index}, `head ${index + 1}`)));
  chosen.head = clamp(chosen.head, 0, heads.length - 1);
  select.value = chosen.head;
}

function makeMatrixView(host, explanation) {
  const {page, chosen, cells} = explanation;
  const bar = element('div', {class: 'bar'});
  host.append(bar);
  const matrix = new Matrix(host, 'Weights');
  if (cells) host.append(cells.element);
  const head = selector('Head', [], 0, index => {
    chosen.head = index;
    show();
  });
  const map = mapSelector(explanation, index => {
    chosen.map = index;
    show();
  });
  const show = () => {
    map.select.value = chosen.map;
    fillHeads(head.select, explanation);
    cells?.keep(page.maps[chosen.map], chosen.head);
    const at = page.maps[chosen.map], about = at.heads[chosen.head];
    if (!about) return;
    loadHead(page, about).then(loaded => {
      if (page.maps[chosen.map].heads[chosen.head] !== about) return;
      matrix.choose = cells && at.key ? cell => cells.show(at, chosen.head, cell) : null;
      matrix.show(loaded, page.lists[at.rows], page.lists[at.columns],
                  {name: `${at.name}, head ${chosen.head + 1}`});
    }).catch(complain);
  };
  bar.append(map.label, head.label, matrix.buttons());
  return {matrix, recolor: () => matrix.recolor(), show};
}

function makeHeadsView(host, explanation) {
  const {page, chosen} = explanation;
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
    const loaded = await Promise.all(numbers.map(number => loadHead(page, at.heads[number])));
    if (page.maps[chosen.map] !== at) return;
    lines.show(loaded.map((head, index) => ({head, number: numbers[index]})),
               page.lists[at.rows], page.lists[at.columns], at.name);
  };
  const show = () => {
    map.select.value = chosen.map;
    chips.replaceChildren(...chipsOf(page.maps[chosen.map].heads.length, heads(), () => draw().catch(complain)));
    draw().catch(complain);
  };
  const map = mapSelector(explanation, index => {
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
