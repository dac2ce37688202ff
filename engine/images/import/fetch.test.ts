import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, suite, test } from 'node:test';

import { fetchArchive, fetchFile } from './fetch.ts';

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

  test('is not waited for without end: neither for its beginning nor for its rest', async () => {
    const silent = createServer(({ url }, answer) => void (url === '/rest' && answer.write('a piece'))).listen(0);
    await once(silent, 'listening');
    const place = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const whole = async (path: string): Promise<number> => {
      let bytes = 0;
      const { body } = await fetchFile(`${place}${path}`, { silenceMilliseconds: 100 });
      for await (const piece of body) bytes += piece.length;
      return bytes;
    };
    try {
      for (const path of ['/beginning', '/rest']) {
        const message = `${place}${path} cannot be downloaded: the server is silent`;
        await assert.rejects(whole(path), { kind: 'failed', message });
      }
    } finally {
      silent.closeAllConnections();
      silent.close();
    }
  });

  test('comes by the proxy that the environment names, which alone gets its name and password', async () => {
    const asked: (string | undefined)[] = [];
    const proxy = createServer(({ url, headers }, answer) => {
      asked.push(url, headers['proxy-authorization']);
      answer.end('by a proxy');
    }).listen(0);
    await once(proxy, 'listening');
    process.env['HTTP_PROXY'] = `http://alice:p%40ss@127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    try {
      const { body } = await fetchFile('http://192.0.2.1/file');
      assert.equal(Buffer.concat(await Array.fromAsync(body)).toString(), 'by a proxy');
      assert.deepEqual(asked, ['http://192.0.2.1/file', `Basic ${Buffer.from('alice:p@ss').toString('base64')}`]);
      assert.equal(await fetched('/0'), 'content'); // loopback is asked directly
    } finally {
      delete process.env['HTTP_PROXY'];
      proxy.closeAllConnections();
      proxy.close();
    }
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
