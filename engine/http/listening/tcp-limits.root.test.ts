import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import { NEWEST } from '../versions/api-version.ts';

const root = dirname(dirname(dirname(import.meta.dirname)));
const PORT = 2375;

type Asked = { path: string; method?: string; token?: string; from?: string };
type Answer = { status: number; reason: string; headers: Record<string, string>; body: string };

/** Sends requests over TCP, one after the other, from a process in the daemon's network namespace. */
async function overTcp(engine: TestEngine, ...asked: Asked[]): Promise<Answer[]> {
  const program = `
    import { request } from 'node:http';
    import { once } from 'node:events';
    import { text } from 'node:stream/consumers';
    const answers = [];
    for (const { path, method = 'GET', token, from = '127.0.0.1' } of ${JSON.stringify(asked)}) {
      const headers = token === undefined ? {} : { authorization: 'Bearer ' + token };
      const sent = request({ host: '127.0.0.1', port: ${PORT}, path, method, headers, localAddress: from, agent: false });
      sent.end();
      const [answer] = await once(sent, 'response');
      const { statusCode: status, statusMessage: reason } = answer;
      answers.push({ status, reason, headers: answer.headers, body: await text(answer) });
    }
    console.log(JSON.stringify(answers));`;
  return JSON.parse(
    await engine.onHost([process.execPath, '--input-type=module', '-e', program], { timeout: 120_000 }),
  ) as Answer[];
}

/** Sends SIGHUP and waits for the event that tells of the reload. */
async function reload(engine: TestEngine): Promise<void> {
  const events = await engine.stream('GET', '/events?filters={"type":["daemon"]}'.replaceAll('"', '%22'));
  process.kill(engine.pid, 'SIGHUP');
  await once(events, 'data');
  events.destroy();
}

function sha256(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

function remaining({ headers }: Answer): string | undefined {
  return headers['x-ratelimit-remaining'];
}

suite('--api-rate-limit', { concurrency: false }, () => {
  let folder: Awaited<ReturnType<typeof mkdtempDisposable>>;
  let engine: TestEngine;
  const settings = {
    limits: { anonymous: 3, user: 1000 },
    secondary: { restPoints: { limit: 8, windowSeconds: 600 }, concurrent: { limit: 2 } },
    identities: { tokens: [{ sha256: sha256('of-ada'), user: 'ada' }] },
  };
  const write = async (value: unknown): Promise<void> =>
    await writeFile(join(folder.path, 'limits.json'), JSON.stringify(value));
  before(async () => {
    folder = await mkdtempDisposable(join(tmpdir(), 'gantry-limits-'));
    await write(settings);
    engine = await TestEngine.start({
      flags: [`--host=tcp://127.0.0.1:${PORT}`, `--api-rate-limit=${folder.path}/limits.json`],
    });
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    await folder.remove();
  });

  test('a client over TCP is refused when the quota of its address is spent, with the headers of the gateway', async () => {
    const from = '127.0.0.2';
    const four = [1, 2, 3, 4].map(() => ({ path: '/v1.24/info', from }));

    const answers = await overTcp(engine, ...four, { path: '/version', from: '127.0.0.3' });

    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200, 403, 200],
    );
    assert.deepEqual(answers.map(remaining), ['2', '1', '0', '0', '2']);
    const { headers, body } = answers[3]!;
    assert.match(body, /^\{"message":"API rate limit exceeded for 127\.0\.0\.2\.",.*#primary-rate-limits"\}$/);
    assert.equal(headers['content-type'], 'application/json');
    assert.equal(headers['x-ratelimit-resource'], 'core');
    assert.equal(headers['x-ratelimit-limit'], '3');
    assert.equal(headers['api-version'], NEWEST);
  });

  test('errors and paths that do not exist carry the headers too', async () => {
    const from = '127.0.0.4';

    const answers = await overTcp(
      engine,
      { path: '/containers/nobody/json', from },
      { path: '/nowhere', from },
      { path: '/containers/%/json', from },
      { path: '/containers/%/json', from },
    );

    assert.deepEqual(
      answers.map(({ status }) => status),
      [404, 404, 400, 403],
    );
    assert.deepEqual(answers.map(remaining), ['2', '1', '0', '0']);
  });

  test('a token has the quota of its user; an unknown one is refused and counts on the address', async () => {
    const from = '127.0.0.5';

    const answers = await overTcp(
      engine,
      { path: '/_ping', token: 'of-ada', from },
      { path: '/_ping', token: 'of-eve', from },
      { path: '/_ping', from },
    );

    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 401, 200],
    );
    assert.deepEqual(answers.map(remaining), ['999', '2', '1']);
    assert.deepEqual(JSON.parse(answers[1]!.body), { message: 'Bad credentials' });
  });

  test('too many points for one endpoint are the secondary limit', async () => {
    const posts = [1, 2].map(() => ({ path: '/containers/nobody/start', method: 'POST', token: 'of-ada' }));

    const answers = await overTcp(engine, ...posts, { path: '/containers/nobody/json', token: 'of-ada' });

    assert.deepEqual(
      answers.map(({ status }) => status),
      [404, 403, 404],
    );
    const { headers, body, reason } = answers[1]!;
    assert.equal(reason, 'Secondary rate limit exceeded');
    assert.match(body, /secondary rate limit.*#secondary-rate-limits/);
    assert.ok(Number(headers['retry-after']) > 500);
  });

  test('a stream and a connection that was taken over are under way until they end', async () => {
    const id = await engine.run(['sh'], { OpenStdin: true, StdinOnce: true });
    const program = `
      import { request } from 'node:http';
      import { once } from 'node:events';
      const send = (method, path, headers = {}) => {
        const authorization = 'Bearer of-ada';
        const sent = request({ host: '127.0.0.1', port: ${PORT}, method, path, headers: { authorization, ...headers }, agent: false });
        return sent.end();
      };
      const [events] = await once(send('GET', '/events'), 'response');
      const upgrade = { connection: 'Upgrade', upgrade: 'tcp' };
      const [attach, socket] = await once(send('POST', '/containers/${id}/attach?stream=1&stdin=1', upgrade), 'upgrade');
      const [refused] = await once(send('GET', '/version'), 'response');
      socket.end('exit\\n');
      await once(socket.resume(), 'close');
      let admitted;
      // Its own side is closed; the daemon's follows.
      for (let n = 0; n < 200 && admitted?.statusCode !== 200; n += 1) [admitted] = await once(send('GET', '/version'), 'response');
      console.log(JSON.stringify([events, attach, refused, admitted].map((a) => [a.statusCode, a.headers['x-ratelimit-limit']])));
      process.exit(0);`;

    const said = await engine.onHost([process.execPath, '--input-type=module', '-e', program], { timeout: 120_000 });

    assert.deepEqual(JSON.parse(said), [
      [200, '1000'],
      [101, '1000'],
      [403, '1000'],
      [200, '1000'],
    ]);
  });

  test('a Unix socket is not limited', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, async () => await engine.get('/version')));

    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    assert.equal(answers[0]!.headers['x-ratelimit-limit'], undefined);
  });

  test('the docker command line sends a token from its HttpHeaders, and shows a refusal', async () => {
    const config = join(folder.path, 'docker');
    await promisify(execFile)('mkdir', ['-p', config]);
    const docker = async (): Promise<string> =>
      await engine.onHost(['sh', '-c', `DOCKER_CONFIG=${config} docker -H tcp://127.0.0.1:${PORT} ps 2>&1 || true`], {
        timeout: 120_000,
      });

    await writeFile(join(config, 'config.json'), JSON.stringify({ HttpHeaders: { Authorization: 'Bearer of-ada' } }));
    const known = await docker();
    await writeFile(join(config, 'config.json'), JSON.stringify({ HttpHeaders: { Authorization: 'Bearer of-eve' } }));
    const unknown = await docker();

    assert.match(known, /^CONTAINER ID/);
    assert.match(unknown, /Bad credentials/);
  });

  test('a reload brings other limits and tokens; counts stay', async () => {
    const from = '127.0.0.6';
    await overTcp(engine, { path: '/version', from });
    const tokens = [{ sha256: sha256('of-eve'), user: 'eve' }];
    await write({ ...settings, limits: { anonymous: 10, user: 20 }, identities: { tokens } });
    await reload(engine);

    const answers = await overTcp(
      engine,
      { path: '/version', from },
      { path: '/version', token: 'of-eve', from },
      { path: '/version', token: 'of-ada', from },
    );

    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 401],
    );
    assert.deepEqual(answers.map(remaining), ['8', '19', '7']);
  });
});

test('a wrong file is told before anything is touched', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'gantry-limits-'));
  const file = join(folder.path, 'limits.json');
  await writeFile(file, JSON.stringify({ limits: { anonymous: -1 }, tokens: [] }));
  const command = [join(root, 'engine/main.ts'), '--validate', `--api-rate-limit=${file}`];

  const failure = promisify(execFile)(process.execPath, command);

  await assert.rejects(failure, (error: { stderr: string }) => {
    assert.match(error.stderr, /flag --api-rate-limit: .*limits\.anonymous must be >= 0/);
    return true;
  });
});
