import type { Readable } from 'node:stream';

/** Reads a stream of JSON values, one per line, as progress and events come. */
export async function* jsonLines<T>(stream: Readable): AsyncGenerator<T> {
  for await (const line of filledLines(stream)) yield JSON.parse(line) as T;
}

/** Reads a stream of lines as text, without the blank ones: for values that JSON.parse would round. */
export async function* filledLines(stream: Readable): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of stream.setEncoding('utf8') as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') yield line;
  }
  if (rest.trim() !== '') yield rest;
}
