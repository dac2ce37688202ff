import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { after, before, suite, test } from 'node:test';

import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Options = { Config?: Record<string, string>; body?: object };

/** Runs the command to its end; the files of its log, the newest first, without times and our bytes of what is no text. */
async function logOf(api: Api, script: string, { Config = {}, body = {} }: Options): Promise<string[]> {
  const HostConfig = { NetworkMode: 'none', LogConfig: { Type: 'json-file', Config } };
  const created = await api.post<{ Id: string }>('/containers/create', {
    Image: 'busybox',
    Cmd: ['sh', '-c', script],
    HostConfig,
    ...body,
  });
  const { Id } = created.body;
  assert.equal((await api.post(`/containers/${Id}/start`)).status, 204);
  await api.post(`/containers/${Id}/wait`);
  const { LogPath } = (await api.get<{ LogPath: string }>(`/containers/${Id}/json`)).body;
  const names = readdirSync(dirname(LogPath)).filter((name) => name.startsWith(basename(LogPath)));
  const logs = names.toSorted().map((name) => readFileSync(`${dirname(LogPath)}/${name}`, 'utf8'));
  await api.delete(`/containers/${Id}`);
  const time = /"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,8}[1-9])?Z"(,"raw":"[\w+/]+=*")?/g;
  return logs.map((log) => log.replaceAll(time, '"time"'));
}

suite('the files of the log are byte for byte those of dockerd', { concurrency: false }, () => {
  let engine: TestEngine;
  let dockerd: Dockerd;
  before(async () => {
    [engine, dockerd] = await Promise.all([TestEngine.start(), Dockerd.start(['--iptables=false', '--bridge=none'])]);
    await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
  });
  after(async () => {
    await Promise.all([engine[Symbol.asyncDispose](), dockerd[Symbol.asyncDispose]()]);
  });

  const letters = (count: number): string => `head -c ${count} /dev/zero | tr '\\0' a`;
  // So wide that the digits of the times do not decide where a file ends.
  const wide = 'for i in $(seq 20); do printf "%0300d\\n" $i; done';
  const cases: Record<string, [script: string, options?: Options]> = {
    'lines of both streams': ['echo out; sleep 1; echo err >&2; sleep 1; echo; echo end'],
    'every character of ASCII': [
      'i=0; while [ $i -lt 128 ]; do printf "\\\\$(printf %03o $i)"; i=$((i+1)); done; echo',
    ],
    'characters of two, three and four bytes': [
      "printf 'é € \\342\\200\\250 \\342\\200\\251 \\360\\237\\220\\263 \\357\\277\\275\\n'",
    ],
    'special characters at every place of a line': [
      `for i in $(seq 40); do for end in '"' '<' 'é' '€' '\u2028' '\u{1f433}' '\t\\' 'é<'; do printf "%0\${i}d$end%03d$end\n" 7 7; done; done`,
    ],
    'a program': ['head -c 300000 /bin/busybox'],
    zeros: ['head -c 50000 /dev/zero'],
    'an end without a newline': ['echo whole; printf part'],
    'a line of 16 KB without its newline': [`${letters(16_384)}; echo; echo next`],
    'a line of 16 KB with its newline': [`${letters(16_383)}; echo; echo next`],
    'a line of 40 KB': [`${letters(40_000)}; echo; echo next`],
    'the output of a terminal': ['echo one; printf "two\\tthree\\033[0m\\n"', { body: { Tty: true } }],
    'three files of 1000 bytes': [wide, { Config: { 'max-size': '1000', 'max-file': '3' } }],
    'labels, variables and a tag': [
      'echo one; echo two',
      {
        Config: { labels: 'b,a,<&>,none', env: 'FOO', 'env-regex': '^BA', tag: '{{.ImageName}}' },
        body: { Labels: { a: 'é"\\', b: '', '<&>': '\u2028' }, Env: ['FOO=x=y', 'BAR=1', 'OTHER=2'] },
      },
    ],
  };
  for (const [name, [script, options = {}]] of Object.entries(cases)) {
    test(name, async () => {
      const [ours, theirs] = await Promise.all([logOf(engine, script, options), logOf(dockerd.api, script, options)]);

      assert.deepEqual(ours, theirs);
    });
  }

  test('one file of 1000 bytes, without the one before that dockerd leaves unread on the disk', async () => {
    const options = { Config: { 'max-size': '1000' } };

    const [ours, theirs] = await Promise.all([logOf(engine, wide, options), logOf(dockerd.api, wide, options)]);

    assert.equal(theirs.length, 2);
    assert.deepEqual(ours, theirs.slice(0, 1));
  });
});
