import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { endProcess } from '@gantry/testing/daemon-process.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

/** No processor: nothing else on the machine has this interpreter. */
const MACHINE = 0xf000 + (process.pid & 0xfff);

/** The header of a program for that machine. */
function foreignProgram(): Buffer {
  const header = Buffer.alloc(64);
  header.write('\x7fELF\x02\x01\x01', 'latin1');
  header.writeUInt16LE(2, 16);
  header.writeUInt16LE(MACHINE, 18);
  return header;
}

/** Names an interpreter of these programs to the kernel, from a mount namespace of its own, until it is disposed. */
async function interpreter(path: string): Promise<AsyncDisposable> {
  const name = `gantry-${process.pid}`;
  const magic = Array.from(foreignProgram().subarray(0, 20), (byte) => `\\x${byte.toString(16).padStart(2, '0')}`);
  const script = `
    place=/proc/sys/fs/binfmt_misc
    mount -t binfmt_misc none $place && printf %s ':${name}:M::${magic.join('')}::${path}:F' > $place/register && echo ready
    read end
    echo -1 > $place/${name}`;
  const child = spawn('unshare', ['-m', 'sh', '-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [first] = (await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])) as [unknown];
  assert.equal(String(first).trim(), 'ready');
  return {
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit');
      child.stdin.end();
      await ended;
      await endProcess(child);
    },
  };
}

test('a foreign platform runs where the kernel has an interpreter for its programs', async () => {
  await using engine = await TestEngine.start({ image: false, version: '1.55', flags: ['--bridge=none'] });
  const archive = new TarWriter().add({ name: 'bin/hello', mode: 0o755, content: foreignProgram() }).end();
  const headers = { 'Content-Type': 'application/x-tar' };
  await engine.post('/images/create?fromSrc=-&repo=foreign&platform=linux/s390x', archive, { headers });
  const body = { Image: 'foreign', Cmd: ['/bin/hello', 'word'], HostConfig: { NetworkMode: 'none' } };
  const create = async (): Promise<string> =>
    (await engine.post<{ Id: string }>('/containers/create?platform=linux/s390x', body)).body.Id;

  const refused = await create();
  await engine.post(`/containers/${refused}/start`);
  assert.notEqual(await engine.wait(refused), 0);

  const echo = join(engine.directory, 'echo');
  copyFileSync('/bin/busybox', echo);
  await using _interpreter = await interpreter(echo);
  const id = await create();
  assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
  assert.equal(await engine.wait(id), 0);
  assert.equal((await engine.output(id)).stdout, '/bin/hello word\n');
});
