// The source: a text, or the file of an image or a sound, as the chosen model reads it.
const maxFileBytes = 750000;  // a request has a megabyte, and a file in it grows by a third
const given = {file: ''};

function fileUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(reader.result));
    reader.addEventListener('error', () => reject(new Refusal('The file cannot be read.', 0)));
    reader.readAsDataURL(file);
  });
}

// Shows the image, or the sound if the browser can play it.
function preview(file) {
  const image = part('preview'), sound = part('player');
  image.hidden = !file.type.startsWith('image/');
  sound.hidden = !file.type.startsWith('audio/');
  URL.revokeObjectURL(sound.src);
  if (!image.hidden) image.src = given.file;
  sound.src = sound.hidden ? '' : URL.createObjectURL(file);  // without one it falls silent
  image.alt = file.name;
}

async function takeFile(file) {
  forgetProblem();
  if (file.size > maxFileBytes)
    throw new Refusal(`The file has ${file.size} bytes; a request can hold ${maxFileBytes}. Take a smaller one.`, 0);
  given.file = await fileUrl(file);
  preview(file);
  part('ask').requestSubmit();
}

function showSource(readsText) {
  part('text-part').hidden = !readsText;
  part('file-part').hidden = readsText;
}

// Returns the source; empty if nothing was given yet.
function sourceGiven(readsText) {
  return readsText ? part('text').value.trim() : given.file;
}

function attachFiles() {
  part('file').addEventListener('change', () => {
    const [file] = part('file').files;
    if (file) takeFile(file).catch(tellProblem);
  });
  part('player').addEventListener('error', () => { part('player').hidden = true; });
  const frame = part('file-part');
  frame.addEventListener('dragover', event => {
    event.preventDefault();
    frame.classList.add('over');
  });
  frame.addEventListener('dragleave', () => frame.classList.remove('over'));
  frame.addEventListener('drop', event => {
    event.preventDefault();
    frame.classList.remove('over');
    const [file] = event.dataTransfer.files;
    if (file) takeFile(file).catch(tellProblem);
  });
}
