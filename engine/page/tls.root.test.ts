import assert from 'node:assert/strict';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';
import { makeCertificates } from '@gantry/testing/tls/certificates.ts';

import { bundlePage } from '../../tools/bundle-page.ts';

type Asked = { path: string; method?: string; headers?: Record<string, string> };
/** `error`: the connection was refused. */
type Answer = { status?: number; headers?: Record<string, string | string[]>; body?: string; error?: string };

const PORT = 9443;
const root = join(import.meta.dirname, '../..');

suite('the page over TLS', { concurrency: false }, () => {
  let folder: Awaited<ReturnType<typeof mkdtempDisposable>>;
  let engine: TestEngine;
  const file = (name: string): string => join(folder.path, name);
  before(async () => {
    await bundlePage(root, join(root, 'build/app/page'));
    folder = await mkdtempDisposable(join(tmpdir(), 'gantry-page-tls-'));
    makeCertificates(folder.path);
    engine = await TestEngine.start({
      version: '1.51',
      image: false,
      flags: [
        `--page=0.0.0.0:${PORT}`,
        '--tlsverify',
        `--tlscacert=${file('ca.pem')}`,
        `--tlscert=${file('server.pem')}`,
        `--tlskey=${file('server-key.pem')}`,
      ],
    });
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    await folder.remove();
  });

  /** Requests by a client with a certificate of this name, from the daemon's machine. */
  async function ask(client: string | undefined, ...asked: Asked[]): Promise<Answer[]> {
    const keys = client === undefined ? {} : { cert: file(`${client}.pem`), key: file(`${client}-key.pem`) };
    const program = `
      import { readFileSync } from 'node:fs';
      import { request } from 'node:https';
      import { text } from 'node:stream/consumers';
      const keys = Object.fromEntries(Object.entries(${JSON.stringify({ ...keys, ca: file('ca.pem') })})
        .map(([name, path]) => [name, readFileSync(path)]));
      const answers = [];
      for (const { path, method = 'GET', headers = {} } of ${JSON.stringify(asked)}) {
        const sent = request({ host: '127.0.0.1', port: ${PORT}, path, method, headers, agent: false, ...keys });
        sent.end();
        answers.push(await new Promise((resolve) => {
          sent.on('error', ({ message }) => resolve({ error: message }));
          sent.on('response', (answer) => text(answer).then(
            (body) => resolve({ status: answer.statusCode, headers: answer.headers, body }),
            ({ message }) => resolve({ error: message })));
        }));
      }
      console.log(JSON.stringify(answers));`;
    const said = await engine.onHost([process.execPath, '--input-type=module', '-e', program], { timeout: 120_000 });
    return JSON.parse(said) as Answer[];
  }

  async function invitation(): Promise<URL> {
    return new URL((await engine.post<{ URL: string }>('/page', {})).body.URL);
  }

  test('an invitation opens a session for a client with a certificate, with a cookie that needs TLS', async () => {
    const url = await invitation();
    const [entered] = await ask('client', { path: `${url.pathname}${url.search}` });
    const path = String(entered!.headers!['location']);
    const cookie = String(entered!.headers!['set-cookie']).split(';')[0]!;
    const page = { cookie, origin: url.origin, 'sec-fetch-site': 'same-origin' };
    const change = { path: `${path}api/v1.51/volumes/create`, method: 'POST' };

    const [html, list, made, plain, foreign] = await ask(
      'client',
      { path, headers: page },
      { path: `${path}api/v1.51/containers/json`, headers: page },
      { ...change, headers: { ...page, 'content-type': 'application/json' } },
      { ...change, headers: { ...page, origin: url.origin.replace('https', 'http') } },
      { ...change, headers: { ...page, origin: 'https://evil.example' } },
    );

    assert.equal(url.origin, `https://127.0.0.1:${PORT}`);
    assert.match(String(entered!.headers!['set-cookie']), /; HttpOnly; SameSite=Strict; Secure$/);
    assert.deepEqual(
      [html, list, made, plain, foreign].map((answer) => answer!.status),
      [200, 200, 201, 403, 403],
    );
  });

  test('a client without a certificate, or with one of another authority, reaches nothing and uses no invitation', async () => {
    const url = await invitation();
    const path = `${url.pathname}${url.search}`;

    const answers = [...(await ask(undefined, { path })), ...(await ask('foreign', { path }))];
    const [entered] = await ask('client', { path });

    assert.ok(answers.every(({ error, status }) => error !== undefined && status === undefined));
    assert.equal(entered!.status, 303);
  });
});
