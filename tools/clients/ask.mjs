// Sends requests with Node's fetch. README.md of this folder describes the plan and the output. fetch refuses the
// header Expect, so the action `expect` uses node:http.
import {readFileSync, writeFileSync} from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import {join} from 'node:path';
import {Readable} from 'node:stream';
import {setTimeout as sleep} from 'node:timers/promises';

const [planFile, folder] = process.argv.slice(2);

function read(line) {
  const [name, action, method, url, fields, file] = line.split('\t');
  const headers = Object.fromEntries(fields.split('&').filter(Boolean).map((field) => {
    const at = field.indexOf('=');
    return [field.slice(0, at), field.slice(at + 1)];
  }));
  return {name, action, method, url, headers, body: file === '-' ? undefined : readFileSync(file)};
}

// A body in pieces, so that fetch cannot find its length.
function* pieces(body) {
  for (let at = 0; at < body.length; at += 50000) yield body.subarray(at, at + 50000);
}

async function ask(one) {
  const signal = AbortSignal.timeout(one.action === 'abandon' ? 300 : 120000);
  const options = {method: one.method, headers: one.headers, body: one.body, signal};
  if (one.action === 'chunked')
    Object.assign(options, {body: Readable.toWeb(Readable.from(pieces(one.body))), duplex: 'half'});
  const found = await fetch(one.url, options);
  const told = {status: found.status, version: 'HTTP/1.1', kind: found.headers.get('content-type') ?? '',
                number: Number(found.headers.get('content-length') ?? -1)};
  if (one.action !== 'stream' && one.action !== 'leave') {
    told.body = Buffer.from(await found.arrayBuffer());
    return told;
  }
  const parts = [];
  const reader = found.body.getReader();
  while (true) {
    const {done, value} = await reader.read();
    if (done) break;
    parts.push(value);
    if (one.action === 'leave') {
      await reader.cancel();
      break;
    }
  }
  return {...told, body: Buffer.concat(parts), number: parts.length};
}

function askExpecting(one) {
  const {request} = one.url.startsWith('https:') ? https : http;
  return new Promise((resolve, reject) => {
    const headers = {...one.headers, 'Expect': '100-continue', 'Content-Length': one.body.length};
    const asked = request(one.url, {method: one.method, headers});
    asked.once('continue', () => asked.end(one.body));
    asked.on('error', reject);
    asked.setTimeout(120000, () => asked.destroy(new Error('no answer within 120 s')));
    asked.on('response', async (found) => {
      const parts = [];
      for await (const part of found) parts.push(part);
      asked.destroy();
      resolve({status: found.statusCode, version: `HTTP/${found.httpVersion}`,
               kind: found.headers['content-type'] ?? '', number: Number(found.headers['content-length'] ?? -1),
               body: Buffer.concat(parts)});
    });
    asked.flushHeaders();
  });
}

async function repeat(one, inTurn, crowd, each, pause) {
  const first = await ask(one);
  const different = new Set([first.body.toString()]);
  for (let i = 0; i < inTurn; ++i) {
    if (pause) await sleep(pause);
    different.add((await ask(one)).body.toString());
  }
  await Promise.all(Array.from({length: crowd}, async () => {
    for (let i = 0; i < each; ++i) different.add((await ask(one)).body.toString());
  }));
  return {...first, number: different.size};
}

function perform(one) {
  if (one.action === 'expect') return askExpecting(one);
  if (one.action === 'many') return repeat(one, 40, 8, 5, 0);
  if (one.action === 'later') return repeat(one, 1, 0, 0, 21000);
  return ask(one);
}

for (const line of readFileSync(planFile, 'utf8').trim().split('\n')) {
  const one = read(line);
  try {
    const told = await perform(one);
    writeFileSync(join(folder, one.name), told.body);
    console.log([one.name, told.status, told.version, told.kind, told.number].join('\t'));
  } catch (error) {
    console.log([one.name, 'error', `${error} ${error.cause ?? ''}`.replaceAll(/\s+/g, ' ')].join('\t'));
  }
}
process.exit(0);
