import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, suite, test } from 'node:test';

import type { ExecInspect } from '@gantry/engine/exec/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Message = { message: string };
const RUNTIMES = ['crun', 'runc'] as const;
const CUT = String.raw`printf '{"level":"error","msg":"cont' >runtime.log; exit 3`;

suite('a runtime that is cut off while it writes its log', { concurrency: false }, () => {
  let engine: TestEngine;
  let folder: string;
  /** Starts of containers fail while this file is there; execs always do. */
  const switchOf = (runtime: string): string => join(folder, runtime, 'fails');

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gantry-cut-'));
    const flags = RUNTIMES.map((name) => {
      mkdirSync(join(folder, name));
      const path = join(folder, name, name); // under its name it gets what it needs
      const steps = `case "$*" in *" exec "*) ${CUT};; *" run "*|*" create "*) [ ! -e ${switchOf(name)} ] || { ${CUT}; };; esac`;
      writeFileSync(path, `#!/bin/sh\n${steps}\nexec ${name} "$@"\n`);
      chmodSync(path, 0o755);
      return `--add-runtime=cut-${name}=${path}`;
    });
    engine = await TestEngine.start({ flags });
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  for (const name of RUNTIMES) {
    test(`fails the start of a container and of an exec, and nothing else: ${name}`, async () => {
      const { pid } = engine;
      const id = await engine.create(['sleep', '1000'], { HostConfig: { Runtime: `cut-${name}` } });

      writeFileSync(switchOf(name), '');
      const refused = await engine.post<Message>(`/containers/${id}/start`);
      rmSync(switchOf(name));
      assert.equal(refused.status, 500);
      assert.match(refused.body.message, /the runtime ended with code 3/);

      assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
      const exec = async (): Promise<string> => {
        const body = { Cmd: ['true'], AttachStdout: true };
        return (await engine.post<{ Id: string }>(`/containers/${id}/exec`, body)).body.Id;
      };
      const [attached, detached] = [await exec(), await exec()];
      const { socket } = await engine.hijack(`/exec/${attached}/start`, { body: {} });
      assert.match(await text(socket), /the runtime ended with code 3/);
      const answer = await engine.post<Message>(`/exec/${detached}/start`, { Detach: true });
      assert.match(answer.body.message, /the runtime ended with code 3/);

      assert.equal((await engine.get<ExecInspect>(`/exec/${attached}/json`)).body.Running, false);
      assert.equal(engine.pid, pid);
      assert.equal((await engine.get('/_ping')).status, 200);
      assert.equal((await engine.delete(`/containers/${id}?force=1`)).status, 204);
    });
  }
});
