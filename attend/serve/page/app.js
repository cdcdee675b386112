// A form, and a side for each model that is asked.
const asking = {sides: [], models: [], stop: new AbortController()};

function option(model) {
  const made = element('option', {value: model.id}, model.reads_text ? model.id : `${model.id} (reads no text)`);
  made.disabled = !model.reads_text;
  return made;
}

function fillModels(models) {
  asking.models = models;
  const readers = models.filter(model => model.reads_text);
  part('model').replaceChildren(...models.map(option));
  part('other').replaceChildren(element('option', {value: ''}, 'none'), ...models.map(option));
  part('other-label').hidden = models.length < 2;
  part('go').disabled = !readers.length;
  if (!readers.length) return tellProblem(new Refusal('The models of this server read images or sounds, and this page gives texts.'));
  part('model').value = readers[0].id;
  const examples = readers[0].examples;
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
  const names = [part('model').value, part('other').value];
  return names.map(name => asking.models.find(model => model.id === name)).filter(Boolean);
}

async function loadModels() {
  fillModels((await (await ask('v1/models')).json()).data);
}

async function askModels() {
  forgetProblem();
  hush();
  if (!asking.models.length) await loadModels();
  const text = part('text').value.trim();
  if (!text) return part('text').focus();
  asking.stop.abort();
  asking.stop = new AbortController();
  const models = chosenModels();
  part('sides').replaceChildren();
  part('sides').classList.toggle('two', models.length > 1);
  asking.sides = models.map((model, i) => new Side(part('sides'), model, `side${i + 1}-`));
  const {signal} = asking.stop;
  await Promise.all(asking.sides.map(side => side.ask(text, Number(part('count').value), signal)));
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
for (const name of ['model', 'other', 'count'])
  part(name).addEventListener('change', () => { if (asking.sides.length) part('ask').requestSubmit(); });
darkScheme.addEventListener('change', () => asking.sides.forEach(side => side.recolor()));
loadModels().catch(tellProblem);
