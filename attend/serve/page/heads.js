// A switch for each head: without those that are off the model answers otherwise, or the same.
class HeadSwitches {
  // `ask` has the server explain with those fields besides.
  constructor(ask, model) {
    Object.assign(this, {ask, model, off: new Set(), effects: new Map()});
    const every = element('button', {type: 'button'}, 'Effect of every head');
    every.addEventListener('click', () => this.measure().catch(tellProblem));
    this.told = element('div', {class: 'instead', 'aria-live': 'polite', hidden: ''});
    this.above = element('div', {class: 'switches'},
      element('div', {class: 'bar'}, every, element('span', {class: 'soft'},
        'Below each head is a switch. What a head gives that is off is zero.')),
      this.told);
  }

  below(map, number) {
    const name = `${map.key}.head.${number + 1}`;
    const button = element('button', {type: 'button', class: 'switch',
                                      'aria-label': `${map.name}, head ${number + 1}: switch`});
    const show = () => {
      const on = !this.off.has(name);
      button.setAttribute('aria-pressed', on);
      button.textContent = on ? 'on' : 'off';
    };
    button.addEventListener('click', () => {
      if (!this.off.delete(name)) this.off.add(name);
      show();
      this.tell().catch(tellProblem);
    });
    show();
    const before = this.effects.get(name);
    const effect = element('span', {class: 'effect'}, ...(before ? [before.textContent] : []));
    this.effects.set(name, effect);
    return [button, effect];
  }

  async first(fields) {
    return (await (await this.ask(fields)).json()).explanations[0];
  }

  async tell() {
    const without = [...this.off], asked = without.join();
    this.asked = asked;
    this.told.hidden = !without.length;
    if (!without.length) return;
    const {answer, before, after, changed, places} = await this.first({without});
    if (this.asked !== asked) return;
    const line = this.model.answers_numbers
      ? `With all heads it is ${figure(before)}.`
      : `The log probability of the answer above goes from ${figure(before)} to ${figure(after)}; ` +
        `${changed} of its ${places} places have another token.`;
    this.told.replaceChildren(
      element('p', {class: 'soft'}, 'Without ', element('strong', {class: 'asked'}, listed(without)), ' the model answers'),
      element('p', {class: 'answer'}, shown(answer)),
      element('p', {class: 'soft'}, line));
  }

  // What the answer loses without each head, below it.
  async measure() {
    const {target: keys, scores} = await this.first({view: 'effects'});
    keys.forEach((key, row) => scores[row].forEach((effect, head) => {
      const place = this.effects.get(`${key}.head.${head + 1}`);
      if (place && effect !== null) place.textContent = (effect > 0 ? '−' : '+') + brief(Math.abs(effect) || 0).replace(/^$/, '0');
    }));
  }
}
