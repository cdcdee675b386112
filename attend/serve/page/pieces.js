// A text as the pieces that its tokens are written by: each piece reaches to the next one, so that what is between two
// words goes with the first. Null where the tokens are not found in it.
function piecesOf(text, tokens) {
  const small = text.toLowerCase();
  const searched = small.length === text.length ? small : text;
  const starts = [], ends = [];
  let end = 0;
  for (const token of tokens) {
    const written = token.replace(/@@$/, '').replace(/^▁/, '');
    const start = searched.indexOf(searched === small ? written.toLowerCase() : written, end);
    if (start < 0) return null;
    starts.push(start);
    end = start + written.length;
    ends.push(end);
  }
  return starts.map((start, i) => ({
    written: text.slice(start, ends[i]),
    between: text.slice(ends[i], i + 1 < starts.length ? starts[i + 1] : text.length),
  }));
}

// The text without some of its pieces. What was between a piece and those that follow it goes where none follows.
function textWithout(pieces, off) {
  const kept = pieces.filter((_, i) => !off.has(i));
  const last = pieces.at(-1);
  return kept.map((piece, i) => piece.written + (i + 1 < kept.length || piece === last ? piece.between : '')).join('');
}
