/** Follows the tasks of docs/gateway.md and gateway-beside-nginx.md, each on a machine of its own: its namespaces of network, mounts and processes. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { suite, test } from 'node:test';

import { commandsOf, patternOf, type Command } from '@gantry/testing/console.ts';

const docs = join(dirname(import.meta.dirname), 'docs');
const guide = readFileSync(join(docs, 'gateway.md'), 'utf8');
const besideNginx = readFileSync(join(docs, 'gateway-beside-nginx.md'), 'utf8');
const MAIN = join(import.meta.dirname, 'main.ts');

/** The reader's code host on port 3000, as Gitea answers: two tokens are good. */
const CODE_HOST = `
const users = { 'token token-of-ada': 1, 'Bearer token-of-ada': 1, 'token token-of-bob': 2, 'Bearer token-of-bob': 2 };
require('node:http').createServer((request, response) => {
  const id = users[request.headers.authorization];
  if (request.url === '/api/v1/user' && id === undefined) response.writeHead(401).end('{"message":"token is required"}');
  else response.setHeader('content-type', 'application/json').end(JSON.stringify({ id: id ?? 0, login: id === 2 ? 'bob' : 'ada' }));
}).listen(3000, '127.0.0.1', () => console.log('listening'));`;

/** A shell on a machine with loopback, the code host and an address of Cloudflare's. */
class Machine implements AsyncDisposable {
  readonly #shell: ChildProcess;
  readonly #exited: Promise<unknown>;
  #output = '';

  private constructor(shell: ChildProcess) {
    this.#shell = shell;
    this.#exited = once(shell, 'exit');
    shell.stdout!.on('data', (chunk: Buffer) => {
      this.#output += chunk.toString();
    });
  }

  static async start(folder: string): Promise<Machine> {
    await mkdir(join(folder, 'bin'));
    const program = join(folder, 'bin/gantry');
    await writeFile(program, `#!/bin/sh\nshift\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
    await chmod(program, 0o755);
    await writeFile(join(folder, 'code-host.cjs'), CODE_HOST);
    await mkdir(join(folder, 'work'));
    const shell = spawn(
      'unshare',
      ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', 'bash', '--norc'],
      {
        cwd: join(folder, 'work'),
        env: { ...process.env, PATH: `${join(folder, 'bin')}:/usr/sbin:${process.env['PATH']}` },
        stdio: ['pipe', 'pipe', 'inherit'],
      },
    );
    const machine = new Machine(shell);
    await machine.run(
      'exec 2>&1; mount -t tmpfs none /run && ip link set lo up && ip address add 173.245.48.9/32 dev lo',
    );
    await machine.run(
      `'${process.execPath}' ../code-host.cjs > ../code-host.log & until grep -q l ../code-host.log; do sleep 0.1; done`,
    );
    return machine;
  }

  /** Runs a command in the shell, and returns its output. */
  async run(command: string): Promise<string> {
    this.#output = '';
    // A gateway in the background is ready, or has ended, before the next command.
    const log = /gantry gateway .*> (\S+) &$/.exec(command)?.[1];
    const ready =
      log === undefined ? '' : `until grep -qs '"msg":"ready"' ${log} || ! kill -0 $!; do sleep 0.1; done\n`;
    this.#shell.stdin!.write(`${command}\n${ready}echo "end of"" the command"\n`);
    while (!this.#output.endsWith('end of the command\n')) {
      if (this.#shell.exitCode !== null) throw new Error(`the shell has ended: ${this.#output}`);
      await Promise.race([once(this.#shell.stdout!, 'data'), this.#exited]);
    }
    return this.#output.replaceAll('\r', '').replace(/\n?end of the command\n$/, '');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#shell.kill('SIGKILL');
    await this.#exited;
  }
}

/** The chapters of the guide, by heading. */
function chaptersOf(text: string): [string, Command[]][] {
  return text
    .split(/^## /m)
    .slice(1)
    .map((chapter) => [chapter.split('\n', 1)[0]!, commandsOf(chapter)]);
}

suite('the tasks of the guide', { concurrency: false }, () => {
  const tasks = chaptersOf(guide).filter(([, commands]) => commands.length > 0);

  test('the list of tasks names each chapter, and each has commands', () => {
    const listed = [...guide.matchAll(/^- \[(.*)\]\(#/gm)].map(([, heading]) => heading);

    assert.deepEqual(
      tasks.map(([heading]) => heading),
      listed,
    );
  });

  for (const [heading, commands] of [...tasks, ['Beside nginx', commandsOf(besideNginx)] as const]) {
    test(`${heading}: each command prints its shown output`, async () => {
      await using folder = await mkdtempDisposable(join(tmpdir(), 'gantry-guide-'));
      await using machine = await Machine.start(folder.path);

      for (const { text, shown } of commands) {
        const output = await machine.run(text);
        assert.match(output, patternOf(shown), `$ ${text}\nshown:\n${shown}\nprinted:\n${output}`);
      }
    });
  }
});
