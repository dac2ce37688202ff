import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { tarList } from '@gantry/testing/archives/tar-list.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { clients, Project } from './project.ts';

const BOTH = 'linux/amd64,linux/arm64';
/** No processor, and no interpreter, runs programs of it. */
const NOBODYS = 'linux/loong64';

type Index = { manifests: { digest: string; platform?: { architecture: string } }[] };
type Inspected = { Architecture: string; Variant?: string; Os: string; RootFS: { Layers: string[] }; Id: string };

suite('builds for several platforms', { skip: clients === undefined && 'its packages could not be fetched' }, () => {
  let engine: TestEngine;
  let project: Project;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'], version: '1.51' });
    project = await Project.make(engine.socketPath);
  });
  after(async () => {
    await project[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });
  const inspect = async (name: string, platform: string): Promise<Inspected> => {
    const [os, architecture] = platform.split('/');
    const query = `platform=${encodeURIComponent(JSON.stringify({ os, architecture }))}`;
    const { status, body, raw } = await engine.get<Inspected>(`/images/${name}/json?${query}`);
    assert.equal(status, 200, raw.toString());
    return body;
  };

  test('give an image for each behind one name, with arguments of its own', async () => {
    const file = [
      'FROM --platform=$BUILDPLATFORM busybox AS tool',
      'ARG TARGETARCH',
      'RUN echo made for $TARGETARCH > /made',
      'FROM scratch',
      'COPY f /',
      'COPY --from=tool /made /',
    ];
    const { code, text } = await project.build(
      'both',
      { Dockerfile: file.join('\n'), f: 'x' },
      '--network=none',
      `--platform=${BOTH}`,
    );
    assert.equal(code, 0, text);
    assert.match(text, /\[linux\/amd64 stage-1 2\/2\] COPY --from=tool/);
    assert.match(text, /\[linux\/arm64 tool 2\/2\] RUN echo made for arm64/);
    const [one, other] = await Promise.all(BOTH.split(',').map(async (platform) => await inspect('both', platform)));
    assert.deepEqual([one!.Architecture, other!.Architecture], ['amd64', 'arm64']);
    assert.equal(one!.RootFS.Layers[0], other!.RootFS.Layers[0]);
    assert.notEqual(one!.RootFS.Layers[1], other!.RootFS.Layers[1]);

    const again = await project.build('both', {}, '--network=none', `--platform=${BOTH}`);
    assert.equal((await inspect('both', 'linux/arm64')).Id, other!.Id);
    assert.doesNotMatch(again.text.replaceAll(/\n#\d+ CACHED/g, ' CACHED'), /(?:COPY|RUN) (?!.*CACHED)[^\n]*\n/);
  });

  test('an image without a base has the platform that the client names', async () => {
    const { code, text } = await project.build(
      'foreign',
      { Dockerfile: 'FROM scratch AS one\nCOPY f /\nFROM one\nLABEL a=b\n', f: 'x' },
      `--platform=linux/arm/v7`,
    );
    assert.equal(code, 0, text);
    const { body } = await engine.get<Inspected>('/images/foreign/json');
    assert.deepEqual([body.Os, body.Architecture, body.Variant], ['linux', 'arm', 'v7']);
  });

  test('files and archives of several platforms have a folder for each, and a layout an index', async () => {
    const files = { Dockerfile: 'FROM scratch\nARG TARGETARCH\nCOPY $TARGETARCH /f\n', amd64: 'one', arm64: 'other' };
    const output = async (options: string): Promise<void> => {
      const { code, text } = await project.build('several', files, `--platform=${BOTH}`, `--output=${options}`);
      assert.equal(code, 0, text);
    };
    const read = async (path: string): Promise<Buffer> => await readFile(join(project.folder, path));

    await output('type=local,dest=folder');
    await output('type=tar,dest=files.tar');
    await output('type=oci,dest=oci.tar');

    const tar = tarList(await read('files.tar'));
    for (const [name, content] of [
      ['linux_amd64', 'one'],
      ['linux_arm64', 'other'],
    ] as const) {
      assert.equal(String(await read(`folder/${name}/f`)), content);
      assert.equal(String(tar.get(`${name}/f`)?.content), content);
    }
    const layout = tarList(await read('oci.tar'));
    const jsonIn = (path: string): Index => JSON.parse(String(layout.get(path)!.content)) as Index;
    const [top] = jsonIn('index.json').manifests;
    const platforms = jsonIn(`blobs/${top!.digest.replace(':', '/')}`).manifests;
    assert.deepEqual(
      platforms.map(({ platform }) => platform?.architecture),
      ['amd64', 'arm64'],
    );
    for (const { digest } of platforms) assert.ok(layout.has(`blobs/${digest.replace(':', '/')}`));

    const docker = await project.build('several', files, `--platform=${BOTH}`, '--output=type=docker,dest=d.tar');
    assert.equal(docker.code, 1);
    assert.match(docker.text, /docker exporter does not (?:currently )?support exporting manifest lists/);
  });

  test('a RUN without an interpreter for the platform says so', async () => {
    const files = {
      Dockerfile: 'FROM scratch AS base\nCOPY --chmod=755 sh /bin/sh\nFROM base\nRUN echo\n',
      sh: foreignProgram(),
    };
    const { code, text } = await project.build('nobodys', files, '--network=none', `--platform=${NOBODYS}`);
    assert.equal(code, 1);
    assert.match(text, /RUN for linux\/loong64 failed: its programs need an interpreter on this machine/, text);
  });
});

/** The header of a program of another machine. */
function foreignProgram(): string {
  const header = Buffer.alloc(64);
  header.write('\x7fELF\x02\x01\x01', 'latin1');
  header.writeUInt16LE(2, 16);
  header.writeUInt16LE(0xf0f0, 18);
  return header.toString('latin1');
}
