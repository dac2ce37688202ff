import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
const UPSTREAM = '192.0.2.53';
const SILENT = '192.0.2.54';

/** Asks in a namespace as a program in the container does; answers as JSON, or the code of the error. */
const ASK = `
const { Resolver } = require('node:dns').promises;
const resolver = new Resolver({ timeout: 30000, tries: 1 });
resolver.setServers(['127.0.0.11']);
Promise.all(JSON.parse(process.argv[1]).map(async ([method, name]) => {
  try { return await resolver[method](name); } catch (error) { return error.code; }
})).then((answers) => process.stdout.write(JSON.stringify(answers)));`;

suite('names in user networks', { concurrency: false }, () => {
  let engine: TestEngine;
  let upstream: ChildProcess;
  const asked: string[] = [];
  const pids = new Map<string, number>();

  before(async () => {
    engine = await TestEngine.start({ flags: [`--dns=${UPSTREAM}`] });
    await engine.onHost(['ip', 'address', 'add', `${UPSTREAM}/32`, 'dev', 'lo']);
    const program = join(import.meta.dirname, '../../../testing/networks/name-server.ts');
    const netns = `--net=${join(engine.directory, 'netns')}`;
    upstream = spawn('nsenter', [netns, process.execPath, program, UPSTREAM], { stdio: ['ignore', 'pipe', 'ignore'] });
    const lines = createInterface(upstream.stdout!);
    await once(lines, 'line');
    lines.on('line', (line) => asked.push(line));
    await engine.post('/networks/create', { Name: 'one', IPAM: { Config: [{ Subnet: '10.1.0.0/24' }] } });
    await engine.post('/networks/create', { Name: 'two', IPAM: { Config: [{ Subnet: '10.2.0.0/24' }] } });
    await engine.post('/networks/create', { Name: 'inner', Internal: true });
    await runs('web', 'one', { Hostname: 'webhost' }, { Aliases: ['www', 'Shared'] });
    await runs('asking', 'one');
  });
  after(async () => {
    upstream.kill('SIGKILL');
    await once(upstream, 'close');
    await engine[Symbol.asyncDispose]();
  });

  async function runs(name: string, network: string, body: object = {}, endpoint: object = {}): Promise<string> {
    const NetworkingConfig = { EndpointsConfig: { [network]: endpoint } };
    const id = await engine.run(
      ['sleep', '1000'],
      { HostConfig: { NetworkMode: network }, NetworkingConfig, ...body },
      name,
    );
    pids.set(name, (await inspect(id)).State.Pid);
    return id;
  }

  async function inspect(ref: string): Promise<Inspect> {
    return (await engine.get<Inspect>(`/containers/${ref}/json`)).body;
  }

  async function addressOf(ref: string, network: string): Promise<string> {
    return (await inspect(ref)).NetworkSettings.Networks[network]!.IPAddress;
  }

  async function ask(from: string, ...questions: [method: string, name: string][]): Promise<unknown[]> {
    const netns = `--net=/proc/${pids.get(from)}/ns/net`;
    const { stdout } = await execute('nsenter', [netns, process.execPath, '-e', ASK, JSON.stringify(questions)]);
    return JSON.parse(stdout) as unknown[];
  }

  const remove = async (...names: string[]): Promise<void> => {
    for (const name of names) await engine.delete(`/containers/${name}?force=1`);
  };

  async function said(ref: string, ...Cmd: string[]): Promise<string> {
    const { body } = await engine.post<{ Id: string }>(`/containers/${ref}/exec`, {
      Cmd,
      AttachStdout: true,
      Tty: true,
    });
    return (await engine.post(`/exec/${body.Id}/start`, { Tty: true })).raw.toString().replaceAll('\r', '');
  }

  /** The process that answers: of two, the one whose parent is the other. Undefined while there is none. */
  function resolverPid(): number | undefined {
    const program = process.env.GANTRY_RESOLVER ?? join(import.meta.dirname, '../../../build/gantry-resolver');
    const parents = new Map<number, number>();
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        if (!readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(`${program}\0${engine.directory}`)) continue;
        const [, parent] = /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
        parents.set(Number(pid), Number(parent));
      } catch {
        // It ended after it was listed.
      }
    }
    return [...parents].find(([, parent]) => parents.has(parent))?.[0];
  }

  /** The one that watches over it has begun another. */
  async function resolverAfter(pid: number | undefined): Promise<number> {
    const until = Date.now() + 60_000;
    for (;;) {
      const found = resolverPid();
      if (found !== undefined && found !== pid) return found;
      if (Date.now() > until) throw new Error('there is no resolver');
      await setTimeout(20);
    }
  }

  test('a container is known by its name, its aliases, its hostname, its short id, and with its network', async () => {
    const ip = await addressOf('web', 'one');
    const { Id } = await inspect('web');

    const answers = await ask(
      'asking',
      ...['web', 'WWW', 'shared', 'webhost', Id.slice(0, 12), 'web.one'].map((name): [string, string] => [
        'resolve4',
        name,
      ]),
      ['reverse', ip],
      ['resolve6', 'web'],
      ['resolveMx', 'web'],
    );

    assert.deepEqual(answers, [...Array.from({ length: 6 }, () => [ip]), ['web.one'], 'ENODATA', 'ENODATA']);
  });

  test('the programs of a container find the resolver in its settings', async () => {
    const settings = await said('asking', 'cat', '/etc/resolv.conf');

    assert.match(settings, /^nameserver 127\.0\.0\.11$/m);
    assert.match(settings, /ndots:0/);
    assert.doesNotMatch(settings, new RegExp(UPSTREAM));
    assert.match(await said('asking', 'ping', '-c', '1', '-W', '5', 'www'), /1 packets received/);
  });

  test('several containers with an alias are all answered, by TCP where they are too many for UDP', async () => {
    const ids = await Promise.all(
      Array.from({ length: 31 }, async (_, n) => await runs(`part${n}`, 'one', {}, { Aliases: ['parts'] })),
    );

    const [found] = (await ask('asking', ['resolve4', 'parts'])) as [string[]];
    const firsts = (await ask(
      'asking',
      ...Array.from({ length: 40 }, (): [string, string] => ['resolve4', 'parts']),
    )) as string[][];

    assert.equal(new Set(found).size, ids.length);
    assert.ok(new Set(firsts.map(([first]) => first)).size > 1);
    await Promise.all(ids.map(async (id) => await engine.delete(`/containers/${id}?force=1`)));
    assert.deepEqual(await ask('asking', ['resolve4', 'missing-parts'], ['resolve4', 'missing-part0']), [
      'ENOTFOUND',
      'ENOTFOUND',
    ]);
  });

  test('names are those of the networks that the container is in at the moment', async () => {
    await runs('far', 'two');
    await engine.post('/containers/far/rename?name=farther');
    const far = await addressOf('farther', 'two');
    const question: [string, string][] = [
      ['resolve4', 'farther'],
      ['resolve4', 'web'],
    ];
    const unknown = await ask('asking', ['resolve4', 'missing-farther']);

    await engine.post('/networks/two/connect', { Container: 'asking', EndpointConfig: { Links: ['farther:linked'] } });
    const both = await ask('asking', ...question, ['resolve4', 'linked']);
    await engine.post('/networks/one/disconnect', { Container: 'asking' });
    const other = await ask('asking', ['resolve4', 'farther'], ['resolve4', 'missing-web']);
    await engine.post('/networks/one/connect', { Container: 'asking' });
    await engine.post('/networks/two/disconnect', { Container: 'asking' });

    const web = await addressOf('web', 'one');
    assert.deepEqual([unknown, both, other], [['ENOTFOUND'], [[far], [web], [far]], [[far], 'ENOTFOUND']]);
    await remove('farther');
  });

  test('a container of the default bridge learns names when it is connected, and port 53 is its own', async () => {
    const id = await engine.run(['sleep', '1000'], {}, 'late');
    pids.set('late', (await inspect(id)).State.Pid);
    await engine.post('/networks/one/connect', { Container: 'late' });

    const [web] = await ask('late', ['resolve4', 'web']);
    const listening = await execute('nsenter', [
      `--net=/proc/${pids.get('late')}/ns/net`,
      ...[
        process.execPath,
        '-e',
        `const s=require('net').createServer().listen(53,'0.0.0.0',()=>{console.log('bound');s.close()})`,
      ],
    ]);

    assert.deepEqual(web, [await addressOf('web', 'one')]);
    assert.equal(listening.stdout, 'bound\n');
    assert.match(await said('late', 'cat', '/etc/resolv.conf'), /nameserver 127\.0\.0\.11/);
    await remove('late');
  });

  test('other names are asked of the servers, kept as long as these allow, also that there are none', async () => {
    const before = asked.length;

    const first = await ask('asking', ['resolve4', 'outside.example'], ['resolve4', 'missing.example']);
    const second = await ask('asking', ['resolve4', 'OUTSIDE.example'], ['resolve4', 'many.example']);

    const [many] = second.slice(1) as string[][];
    assert.deepEqual(second[0], first[0]);
    assert.equal(first[1], 'ENOTFOUND');
    assert.equal(many?.length, 100);
    assert.equal(asked.slice(before).filter((name) => name.toLowerCase().startsWith('outside')).length, 1);
  });

  test('a server that is silent is passed over', async () => {
    await runs('patient', 'one', { HostConfig: { NetworkMode: 'one', Dns: [SILENT, UPSTREAM] } });
    await engine.onHost(['ip', 'address', 'add', `${SILENT}/32`, 'dev', 'lo']);
    await engine.onHost([
      'nft',
      `add table ip silent; add chain ip silent in { type filter hook input priority -10; }; add rule ip silent in ip daddr ${SILENT} drop`,
    ]);

    const [address] = (await ask('patient', ['resolve4', 'patient.example'])) as string[][];

    assert.match(address![0]!, /^198\.51\.100\./);
    await remove('patient');
  });

  test('from an internal network nothing is asked outside', async () => {
    await runs('hidden', 'inner');
    const before = asked.length;

    assert.deepEqual(await ask('hidden', ['resolve4', 'hidden'], ['resolve4', 'secret.example']), [
      [await addressOf('hidden', 'inner')],
      'ESERVFAIL',
    ]);
    assert.equal(asked.length, before);
    await remove('hidden');
  });

  test('names are answered while the daemon is dead, after a crash of the resolver, and by the next daemon', async () => {
    const web = [await addressOf('web', 'one')];
    const question: [string, string] = ['resolve4', 'web'];
    await engine.kill();
    const orphaned = await ask('asking', question);
    const pid = await resolverAfter(undefined);
    process.kill(pid, 'SIGKILL');
    await resolverAfter(pid);
    const again = await answered(question);
    await engine.startAgain();
    await runs('younger', 'one');
    const next = await ask('asking', question, ['resolve4', 'younger']);
    process.kill(await resolverAfter(undefined), 'SIGKILL');
    await runs('youngest', 'one');

    assert.deepEqual([orphaned, again, next], [[web], web, [web, [await addressOf('younger', 'one')]]]);
    assert.deepEqual(await ask('younger', ['resolve4', 'youngest'], question), [
      [await addressOf('youngest', 'one')],
      web,
    ]);
    await remove('younger', 'youngest');
  });

  test('a name with its network is known where both have dots', async () => {
    await engine.post('/networks/create', { Name: 'net.of.dots' });
    await runs('web.of', 'net.of.dots');
    await runs('near', 'net.of.dots', {}, { Links: ['web.of:site'] });
    const ip = await addressOf('web.of', 'net.of.dots');

    const asked = ['web.of', 'web.of.net.of.dots', 'WEB.of.Net.of.Dots', 'site.net.of.dots', 'missing.net.of.dots'];
    const answers = await ask('near', ...asked.map((name): [string, string] => ['resolve4', name]), ['reverse', ip]);

    assert.deepEqual(answers, [[ip], [ip], [ip], [ip], 'ENOTFOUND', ['web.of.net.of.dots']]);
    await remove('web.of', 'near');
    await engine.delete('/networks/net.of.dots');
  });

  test('aliases that no question can ask for keep no container from its start, nor from its other names', async () => {
    const hostile = [
      'evil\nquit',
      'evil\nname x y 6.6.6.6 - web',
      'nul\0',
      'a b',
      'a,b',
      'x'.repeat(64),
      'y'.repeat(100_000),
    ];
    const many = Array.from({ length: 700 }, (_, n) => `${'many.'.repeat(40)}${n}`);
    await runs('evil', 'one', {}, { Aliases: [...hostile, ...many, 'last'], Links: ['web:a,b', 'web:site'] });
    const [ip, web] = [await addressOf('evil', 'one'), await addressOf('web', 'one')];

    const names = ['evil', many.at(-1)!, 'last', 'web'].map((name): [string, string] => ['resolve4', name]);
    const own = await ask('evil', ['resolve4', 'site']);
    assert.deepEqual(await ask('asking', ...names), [[ip], [ip], [ip], [web]]);
    assert.deepEqual(own, [[web]]);
    await remove('evil');
  });

  test('after a clean restart the first start in a user network succeeds', async () => {
    await remove('web', 'asking');
    for (let n = 0; n < 2; n += 1) {
      await engine.kill('SIGTERM');
      while (resolverPid() !== undefined) await setTimeout(5);
      await engine.startAgain();
      await runs('first', 'one');
      assert.deepEqual(await ask('first', ['resolve4', 'first']), [[await addressOf('first', 'one')]]);
      await remove('first');
    }
  });

  /** A resolver that has just begun anew may not listen yet. */
  async function answered(question: [string, string]): Promise<unknown> {
    const until = Date.now() + 60_000;
    for (;;) {
      const [answer] = await ask('asking', question);
      if (Array.isArray(answer) || Date.now() > until) return answer;
    }
  }
});
