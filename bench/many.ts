import type { Api } from '@gantry/testing/api.ts';

import { compare, median, type Row } from './measure.ts';

const COUNT = 1000;
const BLOCK = 100;
/** The first ones and the last ones, whose times are compared. */
const ENDS = 200;
/** The last ones may take this much longer than the first: what grows with the count would take several times as long. */
const FLAT = 1.5;

const CREATED = `create one of ${COUNT} containers`;
const GROWTH = `create, the last ${ENDS} of ${COUNT} beside the first`;
const LISTED = `list ${COUNT} containers`;

type Side = { api: Api; ids: string[]; spent: number[] };

/** Many containers created and listed; both engines have the image `busybox`. */
export async function manyBudgets(ours: Api, theirs: Api, wanted: (name: string) => boolean): Promise<Row[]> {
  if (![CREATED, GROWTH, LISTED].some(wanted)) return [];
  const [mine, other]: [Side, Side] = [
    { api: ours, ids: [], spent: [] },
    { api: theirs, ids: [], spent: [] },
  ];
  // In blocks, so that what else the machine does meets both.
  for (let count = 0; count < COUNT; count += BLOCK) for (const side of [mine, other]) await createBlock(side);
  const rows = [createdRow(mine, other), growthRow(mine, other)].filter(({ name }) => wanted(name));
  const list = { name: LISTED, unit: 'ms', atMost: 0.5, rounds: 9, work: listAll } as const;
  if (wanted(LISTED)) rows.push(await compare(list, mine, other));
  for (const { api, ids } of [mine, other]) for (const id of ids) await api.delete(`/containers/${id}`);
  return rows;
}

async function createBlock({ api, ids, spent }: Side): Promise<void> {
  for (let count = 0; count < BLOCK; count += 1) {
    const started = performance.now();
    const body = { Image: 'busybox', Cmd: ['true'] };
    const answer = await api.post<{ Id: string }>('/containers/create', body);
    if (answer.status !== 201) throw new Error(`create answered ${answer.status}: ${answer.raw.toString()}`);
    spent.push(performance.now() - started);
    ids.push(answer.body.Id);
  }
}

function createdRow({ spent: mine }: Side, { spent: other }: Side): Row {
  const [ours, theirs] = [median(mine), median(other)];
  return { name: CREATED, unit: 'ms', ours, theirs, ratio: ours / theirs, atMost: 0.5 };
}

/** Each engine is compared with itself; the ratio is ours. */
function growthRow({ spent: mine }: Side, { spent: other }: Side): Row {
  const [ours, theirs] = [growth(mine), growth(other)];
  return { name: GROWTH, unit: '×', ours, theirs, ratio: ours, atMost: FLAT };
}

function growth(spent: readonly number[]): number {
  return median(spent.slice(-ENDS)) / median(spent.slice(0, ENDS));
}

async function listAll({ api, ids }: Side): Promise<void> {
  const { body } = await api.get<unknown[]>('/containers/json?all=1');
  if (body.length !== ids.length) throw new Error(`${ids.length} containers expected, ${body.length} listed`);
}
