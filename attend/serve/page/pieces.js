// The parts of a text that its tokens are written by, as [start, end]. Null if tokens are not found in the text.
function spansOfNames(text, tokens) {
  const small = text.toLowerCase();
  const searched = small.length === text.length ? small : text;
  const spans = [];
  let end = 0;
  for (const token of tokens) {
    const written = token.replace(/@@$/, '').replace(/^▁/, '');
    const start = searched.indexOf(searched === small ? written.toLowerCase() : written, end);
    if (start < 0) return null;
    end = start + written.length;
    spans.push([start, end]);
  }
  return spans;
}

// Returns the same kind of spans from spans that count characters. Null means no text. Tokens that share a character
// are one span.
function spansOfCharacters(text, counted) {
  const places = [0];
  for (const character of text) places.push(places.at(-1) + character.length);
  const spans = [];
  for (const [first, last] of counted.filter(Boolean)) {
    const [start, end] = [places[first], places[last]];
    if (spans.length && start < spans.at(-1)[1]) spans.at(-1)[1] = Math.max(end, spans.at(-1)[1]);
    else spans.push([start, end]);
  }
  return spans;
}

// A text as the pieces that its tokens are written by: each piece reaches to the next one, so that the text between two
// words belongs to the first. Null if the tokens are not found in it. `counted` are the spans of tokens, if known.
function piecesOf(text, tokens, counted) {
  const spans = counted ? spansOfCharacters(text, counted) : spansOfNames(text, tokens);
  return spans && spans.map(([start, end], i) => ({
    written: text.slice(start, end),
    between: text.slice(end, i + 1 < spans.length ? spans[i + 1][0] : text.length),
  }));
}

// Returns the text without some of its pieces. The text after the last kept piece is dropped, unless that piece is the
// last of the text.
function textWithout(pieces, off) {
  const kept = pieces.filter((_, i) => !off.has(i));
  const last = pieces.at(-1);
  return kept.map((piece, i) => piece.written + (i + 1 < kept.length || piece === last ? piece.between : '')).join('');
}
