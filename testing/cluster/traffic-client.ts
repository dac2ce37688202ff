/**
 * GET requests, each over a connection of its own, until the input ends; then one line of JSON with what became of them
 * (`TrafficCounts`). Words: how many at once, then URLs. A name is asked of the name server of containers for each request.
 */
import { Resolver } from 'node:dns/promises';
import { get } from 'node:http';
import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const PAUSE_MS = 10;
const ANSWER_MS = 20_000;

const [atOnce, ...urls] = process.argv.slice(2);
const resolver = new Resolver();
resolver.setServers(['127.0.0.11']);
const over = new AbortController();
process.stdin.resume().once('end', () => over.abort());

const counts = { ok: 0, failed: 0, reasons: {} as Record<string, number>, pages: {} as Record<string, number> };
await Promise.all(Array.from({ length: Number(atOnce) }, async (_, at) => await ask(at)));
console.log(JSON.stringify(counts));

async function ask(first: number): Promise<void> {
  for (let at = first; !over.signal.aborted; at += 1) {
    try {
      const text = await answerOf(new URL(urls[at % urls.length]!));
      counts.ok += 1;
      counts.pages[text] = (counts.pages[text] ?? 0) + 1;
    } catch (error) {
      const reason = error instanceof Error ? error.message.replaceAll(/[\d.]+:\d+/g, 'ADDRESS') : String(error);
      counts.failed += 1;
      counts.reasons[reason] = (counts.reasons[reason] ?? 0) + 1;
    }
    await sleep(PAUSE_MS);
  }
}

async function answerOf(url: URL): Promise<string> {
  if (isIP(url.hostname) === 0) {
    const addresses = await resolver.resolve4(url.hostname);
    url.hostname = addresses[Math.floor(Math.random() * addresses.length)]!;
  }
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const request = get(url, { agent: false, timeout: ANSWER_MS }, (answer) => {
    let text = '';
    answer.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    answer.once('error', reject);
    answer.once('end', () =>
      answer.statusCode === 200 ? resolve(text.trim()) : reject(new Error(`status ${answer.statusCode}`)),
    );
  });
  request.once('timeout', () => request.destroy(new Error('no answer')));
  request.once('error', reject);
  return await promise;
}
