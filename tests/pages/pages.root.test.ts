import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { ownClient } from '@gantry/testing/clients/own-client.ts';
import { ClusterHosts } from '@gantry/testing/cluster/hosts.ts';
import { commandsOf, patternOf, type Command } from '@gantry/testing/console.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const folder = join(dirname(dirname(import.meta.dirname)), 'docs/tasks');
/** Pages that need more than one engine, with tests of their own below. */
const OTHERS = ['join-three-machines.md', 'move-from-dockerd.md'];

/** Runs commands as a page's reader would: in an empty folder, on the machine of an engine. */
class Reader {
  readonly #folder: string;
  readonly #replaced: Map<string, string>;

  private constructor(path: string, replaced: Map<string, string>) {
    this.#folder = path;
    this.#replaced = replaced;
  }

  /** `replaced`: texts of the page with those of the test's machine. */
  static async start(path: string, replaced: readonly (readonly [string, string])[] = []): Promise<Reader> {
    await mkdir(join(path, 'bin'));
    await mkdir(join(path, 'work'));
    const program = `#!/bin/sh\nexec '${process.execPath}' -- '${ownClient}' "$@"\n`;
    await writeFile(join(path, 'bin/gantry'), program);
    await chmod(join(path, 'bin/gantry'), 0o755);
    // A reader types slower than a server starts.
    await writeFile(join(path, '.curlrc'), 'retry = 100\nretry-connrefused\nretry-delay = 1\nno-progress-meter\n');
    return new Reader(path, new Map(replaced));
  }

  /** Runs one command, and compares its output with the page's. */
  async follow({ text, shown }: Command, engine: TestEngine): Promise<void> {
    let command = text;
    for (const [from, to] of this.#replaced) command = command.replaceAll(from, to);
    const output = await this.#outputOf(command, engine);
    const token = /^SWMTKN-\S+$/m.exec(output)?.[0];
    if (token !== undefined) this.#replaced.set('SWMTKN-1-…', token);

    assert.match(output, patternOf(shown), `$ ${command}\nshown:\n${shown}\nprinted:\n${output}`);
  }

  async #outputOf(command: string, engine: TestEngine): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>();
    const host = `unix://${engine.socketPath}`;
    const env = {
      ...process.env,
      PATH: `${join(this.#folder, 'bin')}:${process.env['PATH']}`,
      DOCKER_HOST: host,
      DOCKER_CONFIG: join(this.#folder, 'docker'),
      CURL_HOME: this.#folder,
      COMPOSE_PROJECT_NAME: 'page',
    };
    execFile(
      'nsenter',
      [`--net=${engine.netns}`, 'bash', '-c', `exec 2>&1\n${command}`],
      { env, cwd: join(this.#folder, 'work') },
      (_, stdout) => resolve(stdout.trimEnd()),
    );
    return await promise;
  }
}

suite('pages with one engine', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
  });
  after(async () => await engine[Symbol.asyncDispose]());

  const pages = globSync('*.md', { cwd: folder }).filter((name) => !OTHERS.includes(name));
  for (const page of pages.toSorted()) {
    test(`${basename(page, '.md')} shows the output of its commands`, async () => {
      await using place = await mkdtempDisposable(join(tmpdir(), 'gantry-page-'));
      const reader = await Reader.start(place.path);
      const commands = commandsOf(readFileSync(join(folder, page), 'utf8'));

      assert.ok(commands.length > 2);
      for (const command of commands) await reader.follow(command, engine);
    });
  }
});

test('the page move-from-dockerd shows the output of its commands', async () => {
  await using place = await mkdtempDisposable(join(tmpdir(), 'gantry-page-'));
  await using engine = await TestEngine.start({ image: false });
  await using dockerd = await Dockerd.start();
  await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
  const note = {
    Image: 'busybox',
    Cmd: ['sh', '-c', 'echo remember >/notes/one'],
    HostConfig: { Binds: ['notes:/notes'] },
  };
  const { body } = await dockerd.api.post<{ Id: string }>('/containers/create', note);
  await dockerd.api.post(`/containers/${body.Id}/start`);
  await dockerd.api.post(`/containers/${body.Id}/wait`);
  const reader = await Reader.start(place.path, [['/var/run/docker.sock', dockerd.socketPath]]);

  for (const command of commandsOf(readFileSync(join(folder, 'move-from-dockerd.md'), 'utf8')))
    await reader.follow(command, engine);
});

test('the page join-three-machines shows the output of its commands', async () => {
  await using place = await mkdtempDisposable(join(tmpdir(), 'gantry-page-'));
  await using hosts = await ClusterHosts.start(3, { image: true });
  const reader = await Reader.start(place.path, [['10.0.0.', '10.77.0.']]);

  for (const command of commandsOf(readFileSync(join(folder, 'join-three-machines.md'), 'utf8'))) {
    const host = hosts.hosts.find(({ name }) => name === command.host);
    assert.ok(host, command.text);
    await reader.follow(command, host.engine);
  }
});
