// One model's answer and its explanation.
class Side {
  constructor(host, model, prefix) {
    Object.assign(this, {model, prefix});
    this.answer = element('p', {class: 'first answer', 'aria-live': 'polite'});
    this.answers = element('ol', {class: 'answers', 'aria-label': 'Answers'});
    this.notes = element('p', {class: 'soft'});
    this.whatIf = element('div', {class: 'what-if'});
    this.makeWhyNot();
    this.note = element('p', {class: 'soft'});
    this.share = element('button', {type: 'button', hidden: ''}, 'Save as one file');
    this.share.addEventListener('click', () => this.save().catch(tellProblem));
    this.tabs = element('div', {class: 'tabs', role: 'tablist', 'aria-label': 'Views', hidden: ''});
    this.views = element('div');
    host.append(element('section', {class: 'side', 'aria-label': `Model ${model.id}`},
      element('h2', {}, model.id),
      element('div', {class: 'answered'}, element('div', {}, this.answer, this.notes, this.answers, this.whyNot), this.whatIf),
      element('div', {class: 'bar'}, this.share, this.note), this.tabs, this.views));
  }

  // Asks for the answer, then for one map and all layers, and then for all methods with their tests.
  async ask(text, count, signal) {
    Object.assign(this, {text, signal});
    const beam = this.hasOneAnswer() ? 1 : count;
    this.fields = {model: this.model.id, text, ...(beam > 1 ? {beam} : {})};
    this.busy('Waiting for the answer');
    try {
      const grown = beam === 1 ? await this.grow(text) : '';
      // A whole answer is not computed twice: one token is enough to learn how the text was read.
      this.first = await this.predict(text, beam, grown ? {maximum_length: 1} : {});
      if (grown) this.first.predictions = [{target: grown}];
      this.showAnswers(this.first);
      if (this.model.reads_text) this.makeWhatIf(text, this.first);
    } catch (problem) {
      this.rest('');
      throw problem;
    }
    await this.explain();
    this.whyNot.hidden = this.hasOneAnswer() || this.model.answers_spans;
  }

  // Numbers and sets of labels come without a search, and compete with no other answer.
  hasOneAnswer() {
    return this.model.answers_numbers || this.model.answers_label_sets;
  }

  async explain() {
    const {fields, signal} = this;
    const explained = more => ask('v1/explain', {...fields, ...more}, signal);
    this.switches = new HeadSwitches(explained, this.model, fields.against);
    this.cells = new ScoreSum(explained);
    try {
      this.busy('Drawing what it looked at');
      this.showViews(await askPage(fields, signal));
      this.share.hidden = false;
      this.busy('Testing every method: does the answer depend on what its map points at?');
      const page = await askPage({...fields, evidence: true}, signal);
      if (fields !== this.fields) return;
      this.showViews(page);
      this.rest(page.note);
    } catch (problem) {
      if (fields === this.fields) this.rest('');
      throw problem;
    }
  }

  // Makes the form that compares the answer with another one. An empty field removes the comparison.
  makeWhyNot() {
    const other = element('input', {type: 'text', size: '12', spellcheck: 'false', autocomplete: 'off'});
    this.whyNot = element('form', {class: 'why-not', hidden: ''},
      element('label', {}, 'Why not ', other), element('button', {type: 'submit'}, 'Compare'));
    this.whyNot.addEventListener('submit', event => {
      event.preventDefault();
      forgetProblem();
      const {against, ...fields} = this.fields;
      const asked = other.value.trim();
      if (asked === (against ?? '')) return;
      this.fields = asked ? {...fields, against: asked} : fields;
      this.explain().catch(tellProblem);
    });
  }

  // Shows the answer of the most probable tokens while it grows, and returns it. Returns '' if the answer cannot be
  // streamed; predict() then gives it.
  async grow(text) {
    if (!this.model.reads_text || this.hasOneAnswer()) return '';
    let whole = '';
    try {
      const fields = {model: this.model.id, prompt: text, stream: true};
      for await (const {choices: [choice]} of eventsOf(await ask('v1/completions', fields, this.signal)))
        this.answer.textContent = whole += choice?.text ?? '';
      return whole;
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      return '';
    }
  }

  async predict(text, beam, more = {}) {
    const {answers: [answer]} = await (await ask('v1/predict', {
      model: this.model.id, texts: [text], details: true, ...(beam > 1 ? {beam, nbest: beam} : {}), ...more,
    }, this.signal)).json();
    return answer;
  }

  busy(words) {
    this.note.textContent = words + '…';
    this.note.hidden = false;
    this.note.classList.add('busy');
  }

  rest(words) {
    this.note.textContent = words;
    this.note.hidden = !words;
    this.note.classList.remove('busy');
  }

  showAnswers({predictions, cut, unknown, source_tokens: tokens}) {
    this.answer.textContent = bestOf(predictions);
    const labels = predictions[0]?.labels;
    const title = labels ? 'the probability of this label' : 'the probability of the whole answer; answers rank by it per token';
    const rows = labels?.map(({label, probability}) => [label, probability]) ??
      predictions.map(({target, log_probability: logarithm}) => [target, Math.exp(logarithm)]);
    this.answers.hidden = rows.length < 2;
    this.answers.replaceChildren(...rows.map(([text, probability]) => element('li', {},
      element('span', {}, shown(text)), element('span', {class: 'share', title}, percent(probability)))));
    const notes = [];
    if (cut) notes.push(`The text is longer than the model reads; it read ${tokens.length} tokens.`);
    if (unknown.length) notes.push(`The model does not know ${listed(unknown.map(token => `“${token}”`))}.`);
    this.notes.textContent = notes.join(' ');
    this.notes.hidden = !notes.length;
  }

  // Makes one button per token. It switches the token off, and the model answers the text without such tokens.
  makeWhatIf(text, {source_tokens: tokens, source_spans: spans}) {
    const pieces = piecesOf(text, tokens, spans);
    this.whatIf.replaceChildren();
    if (!pieces || pieces.length < 2 || pieces.length > 400) return;
    const off = new Set();
    const instead = element('div', {class: 'instead', 'aria-live': 'polite', hidden: ''});
    const buttons = pieces.map((piece, i) => {
      const button = element('button', {type: 'button', class: 'token', 'aria-pressed': 'true'}, shown(piece.written));
      button.addEventListener('click', () => {
        if (!off.delete(i)) off.add(i);
        button.setAttribute('aria-pressed', !off.has(i));
        this.answerWithout(pieces, off, instead).catch(tellProblem);
      });
      return button;
    });
    this.whatIf.append(element('fieldset', {class: 'choice'},
      element('legend', {}, 'Switch tokens off:'), ...buttons), instead);
  }

  async answerWithout(pieces, off, instead) {
    const text = textWithout(pieces, off);
    this.asked = text;
    instead.hidden = !off.size || off.size === pieces.length;
    if (instead.hidden) return;
    const {predictions} = await this.predict(text, 1);
    if (this.asked !== text) return;
    const best = bestOf(predictions);
    const take = element('button', {type: 'button'}, 'Explain this text');
    take.addEventListener('click', () => {
      part('text').value = text;
      part('ask').requestSubmit();
    });
    instead.replaceChildren(
      element('p', {class: 'soft'}, 'To ', element('strong', {class: 'asked'}, text), ' the model answers'),
      element('p', {class: 'answer'}, best),
      element('p', {class: 'soft'}, best === bestOf(this.first.predictions) ? 'It is the answer to the whole text, too.' : 'It is another answer than to the whole text.'),
      take);
  }

  // Replaces the old views, which stay until the new page is there. The chosen view stays chosen.
  showViews(page) {
    const name = this.view, before = this.explanation;
    const held = [this.tabs, this.views].some(host => host.contains(document.activeElement));
    readColors(page.ramps);
    this.tabs.replaceChildren();
    this.views.replaceChildren();
    this.explanation = new Explanation(page, this.tabs, this.views, {
      prefix: this.prefix,
      parts: this.switches,
      cells: this.cells,
      changed: view => { this.view = view; },
    });
    if (before) Object.assign(this.explanation.chosen, before.chosen);
    this.explanation.show(name);
    if (held) this.explanation.tab(this.view)?.focus();
  }

  recolor() {
    if (!this.explanation) return;
    readColors(this.explanation.page.ramps);
    this.explanation.recolor();
  }

  // The whole explanation as a page of its own, which needs no server.
  async save() {
    this.share.disabled = true;
    try {
      const file = await (await ask('v1/explain', {...this.fields, format: 'html'})).blob();
      const link = element('a', {href: URL.createObjectURL(file), download: `${this.model.id}-explained.html`});
      link.click();
      URL.revokeObjectURL(link.href);
    } finally {
      this.share.disabled = false;
    }
  }
}

function bestOf(predictions) {
  return predictions.length ? shown(predictions[0].target) : '(no answer)';
}

function percent(share) {
  return share > 0 && share < 0.0001 ? 'below 0.01 %' : `${Number((100 * share).toPrecision(3))} %`;
}
