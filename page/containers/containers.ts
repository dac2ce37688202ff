import type { Summary } from '@gantry/client/containers.ts';

import { onEvents } from '../api/engine-events.ts';
import { call, filters } from '../api/request.ts';
import { attempt } from '../parts/notices.tsx';
import { Store } from '../parts/store.ts';

export type Containers = ReadonlyMap<string, Summary>;

const SETTLE_MS = 80;
/** Above it the whole list is read anew. */
const MAX_ASKED = 50;

/** All containers by id; undefined until they are known. Events keep it up to date. */
export const containers = new Store<Containers | undefined>(undefined);

const changed = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;
let reading = Promise.resolve();

/** Follows the containers for as long as the page is open. */
export function followContainers(): void {
  onEvents({
    onConnect: () => void attempt(readAll),
    onEvent: ({ Type, Action, Actor: { ID } }) => {
      if (Type !== 'container' || Action.startsWith('exec_') || Action === 'resize' || Action === 'top') return;
      changed.add(ID);
      timer ??= setTimeout(() => {
        timer = undefined;
        reading = reading.then(readChanged).catch(() => undefined); // one after the other; a lost connection reads all
      }, SETTLE_MS);
    },
  });
}

async function readAll(): Promise<void> {
  const list = await call<Summary[]>('GET', '/containers/json', { query: { all: true } });
  containers.set(new Map(list.map((one) => [one.Id, one])));
}

async function readChanged(): Promise<void> {
  const ids = [...changed];
  changed.clear();
  if (ids.length > MAX_ASKED) return await readAll();
  const query = { all: true, ...filters({ id: ids }) };
  const list = await call<Summary[]>('GET', '/containers/json', { query });
  const next = new Map(containers.value);
  for (const id of ids) next.delete(id);
  for (const one of list) next.set(one.Id, one);
  containers.set(next);
}
