import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

import { newerClients } from '@gantry/testing/clients/newer-clients.ts';

import { BothEngines, normalised, type Side } from '../both-engines.ts';
import { differences } from '../differences.ts';
import { NEWER_PROJECTS, WATCHED, type NewerProject } from './newer-projects.ts';
import { projectState } from './project-state.ts';

const execute = promisify(execFile);
/** Compose waits until a file has been left alone for half a second. */
const REWRITTEN_MS = 3000;

type Ran = Readonly<{ words: string; code: number; output: string; isUnchanged: boolean; state: object }>;
type Failed = { code: number; stdout: string };

/** Undefined where they could not be fetched, which `./gantry test` says. */
const clients = newerClients();

/** Compose 2 with nothing set, on our daemon and on dockerd: each command has the same outcome, and leaves the same objects. */
suite('projects of compose 2', { concurrency: false, skip: clients === undefined }, () => {
  let engines: BothEngines;
  const folder = mkdtempSync(join(tmpdir(), 'gantry-newer-'));
  before(async () => {
    engines = await BothEngines.start('1.41', '1.55');
    const config = { auths: {}, cliPluginsExtraDirs: [clients?.plugins] };
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    for (const project of NEWER_PROJECTS) writeProject(join(folder, project.name), project);
  });
  after(async () => {
    await engines[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  const environment = (side: Side): NodeJS.ProcessEnv => ({
    PATH: process.env.PATH,
    HOME: folder,
    DOCKER_CONFIG: folder,
    DOCKER_HOST: `unix://${side.socketPath}`,
    DOCKER_BUILDKIT: '0',
  });

  /** The exit code and the output; progress of compose itself is left out. */
  async function run(side: Side, cwd: string, words: readonly string[]): Promise<readonly [number, string]> {
    try {
      const { stdout } = await execute(clients!.docker, words, { cwd, env: environment(side), timeout: 120_000 });
      return [0, stdout];
    } catch (error) {
      const { code, stdout } = error as Failed;
      return [code, stdout];
    }
  }

  async function runProject(side: Side, { name, before: first = [], lines }: NewerProject): Promise<Ran[]> {
    const cwd = join(folder, name);
    for (const words of first) await run(side, cwd, words);
    const ran: Ran[] = [];
    let known = '';
    for (const words of lines) {
      const [code, output] = await run(side, cwd, ['compose', ...words]);
      const { ids, ...state } = await projectState(side);
      ran.push({ words: words.join(' '), code, output: plain(side, output), isUnchanged: ids === known, state });
      known = ids;
    }
    return ran;
  }

  test('a changed file reaches the container while compose watches it', { timeout: 300_000 }, async () => {
    assert.equal(await watched(engines.ours), 'second\n');
  });

  /** The page of a container after its source has changed. */
  async function watched(side: Side): Promise<string> {
    const cwd = join(folder, `watched-${side.name}`);
    writeProject(cwd, WATCHED);
    await run(side, cwd, ['compose', 'up', '-d', '--build']);
    const options = { cwd, env: environment(side), stdio: 'ignore' } as const;
    const watching = spawn(clients!.docker, ['compose', 'watch', '--no-up'], options);
    const ended = once(watching, 'exit');
    try {
      const page = ['compose', 'exec', '-T', 'web', 'cat', '/www/index.html'];
      let writtenAt = -Infinity;
      while (watching.exitCode === null) {
        const [, text] = await run(side, cwd, page);
        if (text !== 'first\n') return text;
        if (performance.now() - writtenAt > REWRITTEN_MS) {
          writeFileSync(join(cwd, 'web/index.html'), 'second\n'); // again: the first change may come before the watch
          writtenAt = performance.now();
        }
        await setTimeout(200);
      }
      return 'compose has ended';
    } finally {
      watching.kill('SIGKILL');
      await ended;
      await run(side, cwd, ['compose', 'down', '-v', '-t', '0', '--rmi', 'all']);
    }
  }

  for (const project of NEWER_PROJECTS) {
    test(`${project.name}: each command has dockerd's outcome`, { timeout: 900_000 }, async () => {
      const { ours, theirs } = await engines.both(async (side) => await runProject(side, project));

      const found = new Map<string, unknown>();
      for (const [at, { words }] of ours.entries()) {
        for (const each of differences(ours[at], theirs[at])) {
          if (!found.has(each.place)) found.set(each.place, { words, ...each }); // where it begins
        }
      }
      assert.deepEqual([...found.values()], []);
    });
  }
});

function writeProject(folder: string, { files }: Pick<NewerProject, 'files'>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
}

function plain(side: Side, output: string): string {
  return normalised(side, output).split('\n').toSorted().join('\n');
}
