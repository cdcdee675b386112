// A form, and a side for each model that is asked.
const asking = {sides: [], models: [], stop: new AbortController()};

function option(model) {
  return element('option', {value: model.id}, model.reads_text ? model.id : `${model.id} (images or sounds)`);
}

function chosenModel() {
  return asking.models.find(model => model.id === part('model').value);
}

// Models that are shown side by side read the same kind of source.
function fillOthers() {
  const {reads_text: readsText} = chosenModel();
  const others = asking.models.filter(model => model.reads_text === readsText);
  const before = part('other').value;
  part('other').replaceChildren(element('option', {value: ''}, 'none'), ...others.map(option));
  part('other').value = others.some(model => model.id === before) ? before : '';
  part('other-label').hidden = others.length < 2;
  showSource(readsText);
}

// Models that give vectors only answer nothing that the page shows.
function fillModels(served) {
  const models = served.filter(model => model.answers);
  if (!models.length)
    throw new Refusal('The models of this server give vectors of texts, which this page does not show. ' +
      'Ask /v1/embeddings.', 0);
  asking.models = models;
  part('model').replaceChildren(...models.map(option));
  fillOthers();
  const {examples} = models[0];
  part('examples').hidden = !examples.length;
  part('examples').replaceChildren(...examples.map(text => {
    const button = element('button', {type: 'button'}, shortened(text, 60));
    button.addEventListener('click', () => {
      part('text').value = text;
      part('ask').requestSubmit();
    });
    return button;
  }));
}

function chosenModels() {
  return [chosenModel(), asking.models.find(model => model.id === part('other').value)].filter(Boolean);
}

async function loadModels() {
  fillModels((await (await ask('v1/models')).json()).data);
}

async function askModels() {
  forgetProblem();
  hush();
  if (!asking.models.length) await loadModels();
  const {reads_text: readsText} = chosenModel();
  const source = sourceGiven(readsText);
  if (!source) return part(readsText ? 'text' : 'file').focus();
  asking.stop.abort();
  asking.stop = new AbortController();
  const models = chosenModels();
  part('sides').replaceChildren();
  part('sides').classList.toggle('two', models.length > 1);
  asking.sides = models.map((model, i) => new Side(part('sides'), model, `side${i + 1}-`));
  const {signal} = asking.stop;
  await Promise.all(asking.sides.map(side => side.ask(source, Number(part('count').value), signal)));
}

part('ask').addEventListener('submit', event => {
  event.preventDefault();
  askModels().catch(tellProblem);
});
part('text').addEventListener('keydown', event => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  part('ask').requestSubmit();
});
attachFiles();
part('model').addEventListener('change', fillOthers);
for (const name of ['model', 'other', 'count'])
  part(name).addEventListener('change', () => { if (asking.sides.length) part('ask').requestSubmit(); });
darkScheme.addEventListener('change', () => asking.sides.forEach(side => side.recolor()));
loadModels().catch(tellProblem);
