import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

import { ownClient, said } from '@gantry/testing/clients/own-client.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
const PROMPT = 'ready>';

/** How a user has each shell set up, and starts it; the files are in the home. */
const SHELLS: Readonly<Record<string, { files: Readonly<Record<string, string>>; words: readonly string[] }>> = {
  bash: {
    files: {
      '.bashrc': `PS1='${PROMPT} '; bind 'set show-all-if-ambiguous on'; source <(gantry completion bash)`,
    },
    words: ['bash'],
  },
  zsh: {
    files: {
      '.zshrc': `PS1='${PROMPT} '; autoload -Uz compinit; compinit -u -D; source <(gantry completion zsh)`,
    },
    words: ['zsh'],
  },
  fish: {
    files: {
      '.config/fish/config.fish': `set -g fish_greeting; set -g fish_autosuggestion_enabled 0
function fish_prompt; echo '${PROMPT} '; end
mkdir -p ~/.config/fish/completions; gantry completion fish > ~/.config/fish/completions/gantry.fish`,
    },
    words: ['fish'],
  },
};

/** Words before the tab, and the text on the screen then. */
const TYPED: readonly [line: string, ...shown: string[]][] = [
  ['gantry st', 'start', 'stats', 'stop'],
  ['gantry rena', 'gantry rename'],
  ['gantry volume insp', 'gantry volume inspect'],
  ['gantry rm compl', 'gantry rm complete-me'],
  ['gantry run --hostn', 'gantry run --hostname'],
  ['gantry run --restart=al', 'gantry run --restart=always'],
  ['gantry run --rm busy', 'gantry run --rm busybox:latest'],
  ['gantry run --rm busybox:la', 'gantry run --rm busybox:latest'],
  ['gantry load -i archive-of', 'gantry load -i archive-of-mine.tar'],
];

/** A shell in a terminal, with a home of its own. */
class Terminal implements AsyncDisposable {
  readonly #tmux: (...words: string[]) => Promise<string>;

  private constructor(socket: string, env: NodeJS.ProcessEnv, home: string) {
    this.#tmux = async (...words) => {
      const { stdout } = await execute('tmux', ['-S', socket, '-f', '/dev/null', ...words], { env, cwd: home });
      return stdout;
    };
  }

  static async start(shell: string, home: string, env: NodeJS.ProcessEnv): Promise<Terminal> {
    const { files, words } = SHELLS[shell]!;
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(join(home, name, '..'), { recursive: true });
      writeFileSync(join(home, name), `${content}\n`);
    }
    writeFileSync(join(home, 'archive-of-mine.tar'), '');
    const terminal = new Terminal(join(home, 'tmux'), { ...env, HOME: home, SHELL: '/bin/sh' }, home);
    await terminal.#tmux('new-session', '-d', '-x', '180', '-y', '50', '-c', home, ...words);
    await terminal.until((screen) => screen === PROMPT);
    return terminal;
  }

  /** Types a line, then a tab, and waits until all of this is shown. */
  async completes(line: string, shown: readonly string[]): Promise<void> {
    await this.#tmux('send-keys', '-l', line);
    await this.until((screen) => screen.endsWith(`${PROMPT} ${line}`));
    await this.#tmux('send-keys', 'Tab');
    await this.until((screen) => shown.every((text) => screen.includes(text)));
  }

  /** Leaves the line for an empty screen. */
  async clear(): Promise<void> {
    await this.#tmux('send-keys', 'C-c');
    await this.until((screen) => screen.endsWith(PROMPT));
    await this.#tmux('send-keys', '-l', 'clear');
    await this.#tmux('send-keys', 'Enter');
    await this.until((screen) => screen === PROMPT);
  }

  async until(isSo: (screen: string) => boolean): Promise<void> {
    const deadline = Date.now() + 120_000;
    for (;;) {
      const screen = (await this.#tmux('capture-pane', '-p')).trim();
      if (isSo(screen)) return;
      assert.ok(Date.now() < deadline, `on the screen:\n${screen}`);
      await setTimeout(100); // each look starts a program
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tmux('kill-server');
  }
}

suite('completion in the shells', { concurrency: false, timeout: 600_000 }, () => {
  let engine: TestEngine;
  let env: NodeJS.ProcessEnv;
  before(async () => {
    engine = await TestEngine.start();
    const programs = join(engine.directory, 'bin');
    mkdirSync(programs);
    const script = `#!/bin/sh\nexec '${process.execPath}' -- '${ownClient}' "$@"\n`;
    writeFileSync(join(programs, 'gantry'), script, { mode: 0o755 });
    env = {
      PATH: `${programs}:${process.env.PATH}`,
      GANTRY_HOST: `unix://${engine.socketPath}`,
      TERM: 'xterm',
      LANG: 'C.UTF-8',
    };
    await said(engine, 'create', '--name', 'complete-me', 'busybox');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  for (const shell of Object.keys(SHELLS)) {
    test(`${shell} completes commands, names, flags, their values and files at a tab`, async () => {
      const home = join(engine.directory, `home-${shell}`);
      mkdirSync(home);
      await using terminal = await Terminal.start(shell, home, env);

      for (const [line, ...shown] of TYPED) {
        await terminal.completes(line, shown);
        await terminal.clear();
      }
    });
  }
});
