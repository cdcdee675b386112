// Shows why a head looks at a key: the score of a chosen cell as a sum of products of parts.
class ScoreSum {
  // `ask` requests an explanation with additional fields.
  constructor(ask) {
    this.ask = ask;
    this.element = element('section', {class: 'instead', 'aria-live': 'polite', 'aria-label': 'Parts of the score', hidden: ''});
  }

  static name(map, head) {
    return `${map.key}.head.${head + 1}.`;
  }

  // Hides the cell of another head.
  keep(map, head) {
    if (!this.element.hidden) this.element.hidden = !this.asked.startsWith(ScoreSum.name(map, head));
  }

  // `cell`: [row, column], from 0.
  show(map, head, [row, column]) {
    const at = `${ScoreSum.name(map, head)}query.${row + 1}.key.${column + 1}`;
    this.asked = at;
    this.ask({view: 'scores', at}).then(answer => answer.json()).then(({explanations: [sum]}) => {
      if (this.asked === at) this.fill(sum);
    }).catch(problem => {
      if (this.asked !== at || problem.name === 'AbortError') return;
      this.element.replaceChildren(element('p', {class: 'soft'}, problem.message));
      this.element.hidden = false;
    });
  }

  fill({title, source: keys, target: queries, scores}) {
    const pairs = scores.flatMap((row, query) => row.map((part, key) => ({part, query: queries[query], key: keys[key]})));
    pairs.sort((a, b) => Math.abs(b.part) - Math.abs(a.part));
    const most = pairs.slice(0, 10);
    const rest = pairs.slice(10).reduce((sum, {part}) => sum + part, 0);
    const line = (part, ...names) => element('tr', {}, element('td', {}, part.toFixed(4)),
                                             ...names.map(name => element('td', {}, name)));
    const heading = name => element('th', {scope: 'col'}, name);
    this.element.replaceChildren(
      element('p', {}, title, '. The score is the sum of'),
      element('table', {}, element('tr', {}, heading('part'), heading('query'), heading('key')),
              ...most.map(({part, query, key}) => line(part, query, key)),
              ...(pairs.length > 10 ? [line(rest, 'all other pairs', '')] : [])));
    this.element.hidden = false;
  }
}
