import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { BothEngines, COMMAND_LINES, type Said, type Side } from '../both-engines.ts';
import { run } from './lines.ts';
import { CHOSEN, CREATE_FLAGS, UPDATE_FLAGS } from './service-flags.ts';

const CREATE = 'service create --detach --no-resolve-image';
const INSPECT = "service inspect --format '{{json .Spec}}'";
const PREPARATION = [
  'swarm init --advertise-addr 127.0.0.1 --listen-addr 127.0.0.1:2377',
  'network create --driver overlay --attachable front',
  'secret create one -',
  'config create one -',
];

type Row = Readonly<{ said: Said; shown: unknown }>;

suite('flags of services, beside dockerd', { concurrency: false }, () => {
  let engines: BothEngines;
  let seen: { ours: Map<string, Row>; theirs: Map<string, Row> };
  before(async () => {
    engines = await BothEngines.start('1.41');
    seen = await engines.both(async (side) => {
      for (const line of PREPARATION) assert.equal((await run(side, line)).code, 0, `${side.name}: ${line}`);
      return new Map([...(await created(side)), ...(await updated(side))]);
    });
  });
  after(async () => await engines[Symbol.asyncDispose]());

  const names = ['create', 'update'].flatMap((verb) =>
    COMMAND_LINES.flatMap((program) =>
      (verb === 'create' ? CREATE_FLAGS : UPDATE_FLAGS).map((_flags, at) => nameOf(program, verb, at)),
    ),
  );
  for (const name of names) {
    const [, reason] = Object.entries(CHOSEN).find(([flags]) => name.includes(flags)) ?? [];
    test(reason === undefined ? name : `${name}: ${reason}`, () => {
      const [ours, theirs] = [seen.ours.get(name), seen.theirs.get(name)];
      if (reason === undefined) assert.deepEqual(ours, theirs);
      else assert.notDeepEqual(ours, theirs, 'there is no difference any more');
    });
  }
});

function nameOf(program: string, verb: string, at: number): string {
  return `${program} service ${verb} ${(verb === 'create' ? CREATE_FLAGS : UPDATE_FLAGS)[at]} (${at})`;
}

/** A service for each row; without tasks, as the fields of tasks are compared elsewhere. */
async function created(side: Side): Promise<[string, Row][]> {
  const rows: [string, Row][] = [];
  for (const program of COMMAND_LINES) {
    for (const [at, flags] of CREATE_FLAGS.entries()) {
      const replicas = /--mode|--replicas /.test(flags) ? '' : '--replicas 0';
      const said = await run(side, `${CREATE} --name row ${replicas} ${flags} busybox true`, program);
      const shown = said.code === 0 ? await shownSpec(side, 'row', program) : undefined;
      if (said.code === 0) await run(side, 'service rm row');
      rows.push([nameOf(program, 'create', at), { said, shown }]);
    }
  }
  return rows;
}

async function updated(side: Side): Promise<[string, Row][]> {
  const rows: [string, Row][] = [];
  for (const [index, program] of COMMAND_LINES.entries()) {
    await run(side, `${CREATE} --name base${index} --replicas 0 busybox true`, program);
    for (const [at, flags] of UPDATE_FLAGS.entries()) {
      const said = await run(side, `service update --detach ${flags} base${index}`, program);
      rows.push([nameOf(program, 'update', at), { said, shown: await shownSpec(side, `base${index}`, program) }]);
    }
  }
  return rows;
}

async function shownSpec(side: Side, name: string, program: (typeof COMMAND_LINES)[number]): Promise<unknown> {
  return inOrder(JSON.parse((await run(side, `${INSPECT} ${name}`, program)).stdout));
}

/** The command line itself writes some lists in any order. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => JSON.stringify(inOrder(one))).toSorted();
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, inOrder(field)]));
}
