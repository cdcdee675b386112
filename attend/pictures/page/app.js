// One explanation, which is the document. Blocks of its data follow the script, each with a call that says it is there.
const arrivals = [];

function arrival(block) {
  if (!arrivals[block]) {
    const made = {};
    made.promise = new Promise(resolve => { made.resolve = resolve; });
    arrivals[block] = made;
  }
  return arrivals[block];
}

function arrived(block) {
  arrival(block).resolve();
}

const page = JSON.parse(part('page').textContent);
page.read = async block => {
  if (block === 'thumbnails') return part(block).textContent;
  await arrival(block).promise;
  return part('block' + block).textContent;
};

readColors(page.ramps);
part('title').textContent = page.title;
part('note').textContent = page.note;
// A frame with the page as its text (srcdoc) lacks an address that could name the view.
const hasAddress = location.protocol !== 'about:';
const explanation = new Explanation(page, part('tabs'), part('main'), {
  changed: name => {
    if (hasAddress) history.replaceState(null, '', '#' + name);
  },
});
const {views} = explanation;
explanation.show(location.hash.slice(1));
darkScheme.addEventListener('change', () => {
  readColors(page.ramps);
  explanation.recolor();
});
