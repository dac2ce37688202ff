import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';

import { BothEngines, type Said, type Side } from '../both-engines.ts';
import { run } from './lines.ts';
import { STACK_FILES, STACKS } from './stacks.ts';

const SERVICES = "--format '{{.Name}}/{{.Mode}}/{{.Replicas}}/{{.Image}}/{{.Ports}}'";
const TASKS = "--format '{{.Image}}/{{.DesiredState}}/{{.Error}}'";
const OBJECTS = ['network', 'secret', 'config', 'volume'] as const;

type Step = readonly [line: string, said: Said];

suite('docker stack, beside dockerd', { concurrency: false }, () => {
  let engines: BothEngines;
  before(async () => {
    engines = await BothEngines.start('1.41');
    await engines.both(async (side) => {
      const folder = join(side.directory, 'host', 'stacks');
      await mkdir(folder, { recursive: true });
      for (const [name, text] of Object.entries(STACK_FILES)) await writeFile(join(folder, name), text);
      for (const [name, text] of Object.entries(STACKS)) await writeFile(join(folder, `${name}.yml`), text);
      await run(side, 'swarm init --advertise-addr 127.0.0.1 --listen-addr 127.0.0.1:2377');
    });
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const name of Object.keys(STACKS)) {
    test(`deploy, services, ps, deploy again and rm of the stack ${name}`, async () => {
      const { ours, theirs } = await engines.both(async (side) => await live(side, name));

      assert.deepEqual(ours, theirs);
    });
  }
});

async function live(side: Side, name: string): Promise<Step[]> {
  const steps: Step[] = [];
  const step = async (line: string): Promise<Said> => {
    const said = await run(side, line);
    steps.push([line, inOrder(said)]);
    return said;
  };
  const deploy = `stack deploy --detach=true --resolve-image never -c {dir}/stacks/${name}.yml ${name}`;
  const { code, stderr } = await step(deploy);
  assert.equal(code, 0, stderr);
  await eventually(`${side.name}: the tasks of ${name}`, async () => {
    const { stdout } = await run(side, `stack services ${name} --format '{{.Replicas}}'`);
    const counts = stdout.trim().split('\n');
    if (counts.every((count) => /^(\d+)\/\1\b/.test(count))) return true;
    throw new Error(counts.join(' '));
  });
  await step(`stack services ${name} ${SERVICES}`);
  await step(`stack ps ${name} ${TASKS}`);
  const { stdout } = await run(side, `stack services ${name} --format '{{.Name}}'`);
  for (const service of stdout.trim().split('\n').toSorted()) {
    await step(`service inspect --format '{{json .Spec}}' ${service}`);
  }
  for (const kind of OBJECTS) {
    const filter = `--filter label=com.docker.stack.namespace=${name}`;
    const { stdout: names } = await run(side, `${kind} ls ${filter} --format '{{.Name}}'`);
    for (const one of names.trim().split('\n').filter(Boolean).toSorted()) {
      const what = kind === 'network' ? '.Driver}} {{.Scope}} {{.Internal}} {{.Attachable}} {{json .Labels' : 'json .';
      const part = kind === 'volume' ? 'json .Labels' : kind === 'network' ? what : 'json .Spec';
      await step(`${kind} inspect --format '{{${part}}}' ${one}`);
    }
  }
  await step(deploy);
  await step(`stack rm ${name}`);
  await step('stack ls --format {{.Name}}');
  await eventually(`${side.name}: nothing of ${name}`, async () => {
    const { stdout: left } = await run(side, 'ps -aq');
    if (left.trim() === '') return true;
    throw new Error(left);
  });
  return steps;
}

/** Objects are listed, and made, in any order. */
function inOrder({ stdout, ...said }: Said): Said {
  return { ...said, stdout: stdout.split('\n').toSorted().join('\n') };
}
