// A switch for each head. It shows what the model answers without the heads that are off.
class HeadSwitches {
  // `ask` requests an explanation with additional fields; `against`: the answer to compare with, if any.
  constructor(ask, model, against) {
    Object.assign(this, {ask, model, against, off: new Set(), effects: new Map(), shows: new Map(), order: []});
    const every = element('button', {type: 'button'}, 'Effect of every head');
    every.addEventListener('click', () => this.measure().catch(tellProblem));
    this.slider = element('input', {type: 'range', min: 0, max: 0, value: 0});
    this.count = element('span', {class: 'soft'});
    this.slider.addEventListener('input', () => this.tellCount(Number(this.slider.value)));
    this.slider.addEventListener('change', () => this.switchOff(Number(this.slider.value)).catch(tellProblem));
    this.slide = element('label', {hidden: ''}, 'Switch off, the least important first', this.slider, this.count);
    this.report = element('div', {class: 'instead', 'aria-live': 'polite', hidden: ''});
    this.above = element('div', {class: 'switches'},
      element('div', {class: 'bar'}, every, element('span', {class: 'soft'},
        'Below each head is a switch. A head that is off outputs zero.'), this.slide),
      this.report);
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
    this.shows.set(name, show);
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
    this.report.hidden = !without.length;
    if (!without.length) return;
    const {answer, before, after, changed, places} = await this.first({without});
    if (this.asked !== asked) return;
    const what = this.against ? 'log odds of the answer above go' : 'log probability of the answer above goes';
    const line = this.model.answers_numbers
      ? `With all heads it is ${figure(before)}.`
      : `The ${what} from ${figure(before)} to ${figure(after)}; ` +
        `${changed} of its ${places} positions have another token.`;
    this.report.replaceChildren(
      element('p', {class: 'soft'}, 'Without ', element('strong', {class: 'asked'}, listed(without)), ' the model answers'),
      element('p', {class: 'answer'}, shown(answer)),
      element('p', {class: 'soft'}, line));
  }

  // Shows below each head what the answer loses without it.
  async measure() {
    const {target: keys, scores} = await this.first({view: 'effects'});
    const losses = new Map();
    keys.forEach((key, row) => scores[row].forEach((effect, head) => {
      const name = `${key}.head.${head + 1}`, place = this.effects.get(name);
      if (effect !== null) losses.set(name, effect);
      if (place && effect !== null) place.textContent = (effect > 0 ? '−' : '+') + brief(Math.abs(effect) || 0).replace(/^$/, '0');
    }));
    this.order = [...losses.keys()].sort((a, b) => losses.get(a) - losses.get(b));
    this.slider.max = this.order.length;
    this.slide.hidden = !this.order.length;
    this.tellCount(Number(this.slider.value));
  }

  tellCount(count) {
    this.count.textContent = `${count} of ${this.order.length}`;
  }

  // Switches off the first `count` heads, the least important ones.
  async switchOff(count) {
    this.off = new Set(this.order.slice(0, count));
    for (const show of this.shows.values()) show();
    await this.tell();
  }
}
