import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { TestEngine } from '../../tests/test-engine.ts';

const CLIENTS = 40;

/** A client that asks, waits for the first byte where there is one to come, and leaves without a word. */
async function askAndLeave(engine: TestEngine, request: string, answers: boolean): Promise<void> {
  const socket = connect(engine.socketPath);
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.once('connect', () => {
    socket.write(`${request} HTTP/1.1\r\nHost: x\r\n\r\n`);
    if (!answers) resolve();
  });
  socket.once('data', () => resolve());
  await promise;
  socket.destroySoon();
}

for (const [what, request, answers] of [
  ['of the events', 'GET /events', true],
  ['of a silent log', 'GET /containers/quiet/logs?stdout=1&follow=1', true],
  ['of the end of a container', 'POST /containers/quiet/wait', false],
] as const) {
  test(`followers ${what} are gone when their clients are`, { timeout: 60_000 }, async () => {
    await using engine = await TestEngine.start();
    await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'none' } }, 'quiet');
    const openFiles = (): number => readdirSync(`/proc/${engine.pid}/fd`).length;
    const before = openFiles();

    await Promise.all(Array.from({ length: CLIENTS }, async () => await askAndLeave(engine, request, answers)));
    await engine.get('/_ping'); // behind all of them

    while (openFiles() > before + CLIENTS / 4) await setTimeout(20);
  });
}
