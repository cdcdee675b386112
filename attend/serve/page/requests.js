// Requests of the page to its server, and errors in plain words.
class Refusal extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const askTable = {
  401: () => 'The server wants a key. Enter it next to the model, and ask again.',
  429: () => 'The server has too many requests. Wait a little and ask again.',
  503: () => 'The server is not ready: it loads its models or is shutting down. Ask again later.',
  504: () => 'The answer takes longer than the server allows. Try a shorter text or fewer answers.',
};

async function ask(path, body, signal) {
  const key = part('key').value;
  const headers = key ? {Authorization: 'Bearer ' + key} : {};
  if (body) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(path, {method: body ? 'POST' : 'GET', headers, body: body && JSON.stringify(body), signal});
  } catch (problem) {
    if (problem.name === 'AbortError') throw problem;
    throw new Refusal('The server does not answer. Is it still running?', 0);
  }
  if (response.ok) return response;
  const message = askTable[response.status];
  if (response.status === 401) part('key-label').hidden = false;
  if (message) throw new Refusal(message(), response.status);
  const {error} = await response.json();
  throw new Refusal(`The server says: ${error.message}.`, response.status);
}

// The objects that come as events, until the last, which is "[DONE]".
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    const events = (rest + value).split('\n\n');
    rest = events.pop();
    for (const event of events) {
      const data = event.replace('data: ', '');
      if (data === '[DONE]') return;
      const object = JSON.parse(data);
      if (object.error) throw new Refusal(object.error.message, 0);
      yield object;
    }
  }
}

function tellProblem(problem) {
  if (problem.name === 'AbortError') return;
  part('problem').textContent = problem instanceof Refusal ? problem.message : `Something went wrong here: ${problem.message}`;
  part('problem').hidden = false;
}

function forgetProblem() {
  part('problem').hidden = true;
}

// Returns the data of a page of explanations, as page_json() of map_page.cpp wrote it.
async function askPage(fields, signal) {
  const {texts, thumbnails, blocks} = await (await ask('v1/explain', {...fields, format: 'page'}, signal)).json();
  texts.read = async block => block === 'thumbnails' ? thumbnails : blocks[block];
  return texts;
}
