import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import { clients, Project } from './project.ts';
import { BASE_FILE, BASES, PUBLIC_FILES, TOOLS } from './public-files.ts';

suite('files of public projects', { skip: clients === undefined && 'its packages could not be fetched' }, () => {
  let engine: TestEngine;
  let project: Project;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    project = await Project.make(engine.socketPath);
    const names = BASES.flatMap((name) => ['-t', name]);
    const { code, text } = await project.build(
      'bases',
      { Dockerfile: BASE_FILE, ...TOOLS },
      '--network=none',
      ...names,
    );
    assert.equal(code, 0, text);
  });
  after(async () => {
    await project[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  for (const { name, lines, files, flags = [], output, config } of PUBLIC_FILES) {
    test(`${name}: the image runs, and a second build finds all steps`, async () => {
      const all = { ...files, Dockerfile: `${lines.join('\n')}\n` };
      const first = await project.build(name, all, '--network=none', ...flags);
      assert.equal(first.code, 0, first.text);
      assert.equal((await project.docker(['run', '--rm', name])).text, output, first.text);
      const inspect = async (): Promise<{ Id: string; Config: Record<string, unknown> }> =>
        (await engine.get<{ Id: string; Config: Record<string, unknown> }>(`/images/${name}/json`)).body;
      const { Id, Config } = await inspect();
      assert.deepEqual(Object.fromEntries(Object.keys(config).map((key) => [key, Config[key] ?? null])), config);

      const again = await project.build(name, {}, '--network=none', ...flags);
      assert.equal(again.code, 0, again.text);
      assert.equal((await inspect()).Id, Id);
    });
  }
});
