// Colours by code + 128, as the words of an image, for the scheme that the reader prefers.
const darkScheme = matchMedia('(prefers-color-scheme: dark)');
const colors = {};

function rampColor(ramp, fraction) {
  const at = fraction * (ramp.length - 1);
  const low = Math.min(ramp.length - 2, Math.floor(at));
  return ramp[low].map((value, channel) => value + (ramp[low + 1][channel] - value) * (at - low));
}

// Negative weights get the complementary hue: red and blue change places.
function codeColor(ramp, code) {
  if (code === -128) return darkScheme.matches ? [255, 60, 170] : [208, 20, 130];
  const [red, green, blue] = rampColor(ramp, Math.abs(code) / 127);
  return code < 0 ? [blue, green, red] : [red, green, blue];
}

function word([red, green, blue]) {
  return (255 << 24 | Math.round(blue) << 16 | Math.round(green) << 8 | Math.round(red)) >>> 0;
}

function luminance(color) {
  const [red, green, blue] = color.map(value => (value / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function readColors(ramps) {
  const ramp = darkScheme.matches ? ramps.dark : ramps.light;
  const style = getComputedStyle(document.documentElement);
  for (const name of ['card', 'text', 'soft', 'line', 'mark', 'bad', 'on'])
    colors[name] = style.getPropertyValue('--' + name).trim();
  colors.words = new Uint32Array(256);
  colors.greys = new Uint32Array(256);  // with a trace of colour, to distinguish signs
  colors.isLight = [];  // black is easier to read on it than white
  for (let code = -128; code < 128; ++code) {
    const color = codeColor(ramp, code);
    const grey = 0.3 * color[0] + 0.59 * color[1] + 0.11 * color[2];
    colors.words[code + 128] = word(color);
    colors.greys[code + 128] = word(color.map(value => 0.85 * grey + 0.15 * value));
    colors.isLight[code + 128] = luminance(color) > 0.18;
  }
}

// One colour per head, distinct in both schemes. The colours repeat.
function headColor(head) {
  return `hsl(${(212 + head * 137.5) % 360} 70% ${darkScheme.matches ? 66 : 42}%)`;
}

// Draws codes, row by row, into a canvas of that size.
function paintCodes(canvas, codes, rows, columns, words) {
  canvas.width = columns;
  canvas.height = rows;
  if (!rows || !columns) return canvas;
  const context = canvas.getContext('2d');
  const image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < pixels.length; ++i) pixels[i] = words[codes[i] + 128];
  context.putImageData(image, 0, 0);
  return canvas;
}
