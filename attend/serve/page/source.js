// What is asked: a text, or the file of an image or a sound, as the chosen model reads it.
const mostFileBytes = 750000;  // a request has a megabyte, and a file in it grows by a third
const given = {file: ''};

function fileUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(reader.result));
    reader.addEventListener('error', () => reject(new Refusal('The file cannot be read.', 0)));
    reader.readAsDataURL(file);
  });
}

async function takeFile(file) {
  forgetProblem();
  if (file.size > mostFileBytes)
    throw new Refusal(`The file has ${file.size} bytes; a request can hold ${mostFileBytes}. Take a smaller one.`, 0);
  given.file = await fileUrl(file);
  part('preview').hidden = !file.type.startsWith('image/');
  if (!part('preview').hidden) part('preview').src = given.file;
  part('preview').alt = file.name;
  part('ask').requestSubmit();
}

function showSource(readsText) {
  part('text-part').hidden = !readsText;
  part('file-part').hidden = readsText;
}

// Empty where there is none yet.
function sourceGiven(readsText) {
  return readsText ? part('text').value.trim() : given.file;
}

function attachFiles() {
  part('file').addEventListener('change', () => {
    const [file] = part('file').files;
    if (file) takeFile(file).catch(tellProblem);
  });
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
