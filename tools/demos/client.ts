/**
 * A client on one machine: GET of each URL of the arguments in turn, 20 a second, each over a connection of its own and
 * with 2 seconds of patience. Writes a line for each: `ok` with the page, or `failed` with the reason. It ends with its
 * standard input.
 */
import { get } from 'node:http';

const urls = process.argv.slice(2);
let next = 0;

const timer = setInterval(() => {
  const url = urls[next++ % urls.length]!;
  const request = get(url, { agent: false, signal: AbortSignal.timeout(2000) }, (response) => {
    let page = '';
    response.on('data', (piece: Buffer) => (page += piece.toString()));
    response.on('error', failed);
    response.on('end', () => console.log(`ok ${page.trim()}`));
  });
  request.on('error', failed);
}, 50);

process.stdin.on('end', () => clearInterval(timer)).resume();

function failed(error: Error): void {
  console.log(`failed ${'code' in error ? String(error.code) : error.message}`);
}
