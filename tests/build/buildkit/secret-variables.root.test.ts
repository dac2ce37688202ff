import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { clients, Project } from './project.ts';

const SECRET = 'open-sesame-1001';
const GATE = '--mount=type=cache,id=gate,target=/gate';

type Listed = { Id: string; State: string };

suite('secrets as variables', { skip: clients === undefined && 'its packages could not be fetched' }, () => {
  let engine: TestEngine;
  let project: Project;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none', '--debug'] });
    project = await Project.make(engine.socketPath);
  });
  after(async () => {
    await project[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  test('a step has them before variables of its image; no record, no file on the disk and no log has them', async () => {
    await project.write({ secret: SECRET });
    const step = `RUN ${GATE} --mount=type=secret,id=s,env=A until test -e /gate/go; do usleep 10000; done; echo "$A" | wc -c`;
    const built = project.build(
      'variables',
      { Dockerfile: `FROM busybox\nENV A=image\n${step}` },
      '--network=none',
      '--secret',
      'id=s,src=secret',
    );
    const running = await eventually('the step runs', async () => {
      const { body } = await engine.get<Listed[]>('/containers/json?all=1');
      return body.find(({ State }) => State === 'running');
    });

    const inspected = (await engine.get(`/containers/${running.Id}/json`)).raw.toString();
    const found = await engine.onHost(['sh', '-c', `grep -rlF ${SECRET} ${engine.dataRoot} || true`]);
    await project.build('opened', { Dockerfile: `FROM busybox\nRUN ${GATE} touch /gate/go` }, '--network=none');
    const { code, text } = await built;

    assert.equal(code, 0, text);
    assert.match(text, new RegExp(` ${SECRET.length + 1}\n`));
    assert.ok(!inspected.includes(SECRET));
    assert.equal(found, '');
    assert.ok(!engine.log.includes(SECRET));
    assert.ok(!(await engine.get('/images/variables/get')).raw.includes(SECRET));
  });
});
