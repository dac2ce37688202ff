import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, suite, test } from 'node:test';

import { fetchArchive } from './fetch.ts';

/** `/N` leads to `/N-1`, and `/0` is the archive. */
suite('an archive from a web server', () => {
  let server: Server;
  let address: string;
  const seen: (string | undefined)[] = [];
  before(async () => {
    server = createServer(({ url = '/', headers }, answer) => {
      seen.push(headers.authorization);
      const steps = Number(url.slice(1));
      if (steps === 0) answer.end('content');
      else if (steps > 0) answer.writeHead(302, { location: String(steps - 1) }).end('moved');
      else answer.writeHead(307, { location: decodeURIComponent(url.slice(2)) }).end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => server.close());

  async function fetched(path: string): Promise<string> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of await fetchArchive(`${address}${path}`, () => undefined)) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  }

  for (const path of ['/0', '/1', '/10']) {
    test(`is found behind ${path.slice(1)} redirections`, async () => {
      assert.equal(await fetched(path), 'content');
    });
  }

  test('is asked for with the name and password of its address, which go nowhere else and are not shown', async () => {
    seen.length = 0;
    const lines: string[] = [];
    const report = ({ status = '' }): void => void lines.push(status);
    const source = `http://al%20ice:sec%3Aret@${address}/-${encodeURIComponent(`http://${address}/0`)}`;
    await (await fetchArchive(source, report))[Symbol.asyncIterator]().return?.();

    assert.deepEqual(seen, [`Basic ${Buffer.from('al ice:sec:ret').toString('base64')}`, undefined]);
    assert.deepEqual(lines, [`Downloading from http://${address}/0`]);
    await assert.rejects(
      fetchArchive(`http://alice:secret@${address}/-x:y`, report),
      ({ message }: Error) => !message.includes('secret'),
    );
  });

  test('is found at another address', async () => {
    assert.equal(await fetched(`/-${encodeURIComponent(`http://${address}/0`)}`), 'content');
  });

  test('is not looked for without end', async () => {
    await assert.rejects(fetched('/11'), { kind: 'failed', message: /redirected more than 10 times/ });
  });

  test('is never a file of this machine', async () => {
    const path = `/-${encodeURIComponent('file:///etc/passwd')}`;

    await assert.rejects(fetched(path), {
      kind: 'failed',
      message: /is redirected to an unsupported URL: file:\/\/\/etc\/passwd/,
    });
  });
});
