import type { Readable } from 'node:stream';

/** Reads a stream of JSON values, one per line, as progress and events come. */
export async function* jsonLines<T>(stream: Readable): AsyncGenerator<T> {
  let rest = '';
  for await (const chunk of stream.setEncoding('utf8') as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as T;
  }
  if (rest.trim() !== '') yield JSON.parse(rest) as T;
}
