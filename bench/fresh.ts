/** The first requests to a daemon that has just started, when Node has compiled little. */
import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';

import { compare, type Budget, type Row } from './measure.ts';

const REQUESTS = 50;

/** An engine that can be restarted, with one container that has run. */
export class Fresh {
  readonly #api: Api;
  readonly #restart: () => Promise<void>;
  #container = '';

  constructor(api: Api, restart: () => Promise<void>) {
    this.#api = api;
    this.#restart = restart;
  }

  async prepare(): Promise<void> {
    await this.#api.post('/images/load?quiet=1', await busyboxArchive());
    const created = await this.#api.post<{ Id: string }>('/containers/create', {
      Image: 'busybox',
      Cmd: ['seq', '1000'],
    });
    this.#container = created.body.Id;
    await this.#api.post(`/containers/${this.#container}/start`);
    await this.#api.post(`/containers/${this.#container}/wait`);
  }

  async clear(): Promise<void> {
    await this.#api.delete(`/containers/${this.#container}`);
  }

  /** Milliseconds for each of the requests that follow the first one after a start. */
  async ask(what: string): Promise<number> {
    await this.#restart();
    await this.#get(what);
    const started = performance.now();
    for (let request = 0; request < REQUESTS; request += 1) await this.#get(what);
    return (performance.now() - started) / REQUESTS;
  }

  async #get(what: string): Promise<void> {
    const { status, raw } = await this.#api.get(`/containers/${this.#container}/${what}`);
    if (status !== 200) throw new Error(`${what} answered ${status}: ${raw.toString()}`);
  }
}

const budgets: Budget<Fresh>[] = [
  { name: 'inspect, 50 on a fresh daemon', unit: 'ms', atMost: 1.3, work: async (fresh) => await fresh.ask('json') },
  {
    name: 'read the last 100, 50 on a fresh daemon',
    unit: 'ms',
    atMost: 0.9,
    work: async (fresh) => await fresh.ask('logs?stdout=1&stderr=1&tail=100'),
  },
];

/** Both engines are restarted repeatedly, so they must have no running containers. */
export async function freshBudgets(ours: Fresh, theirs: Fresh, wanted: (name: string) => boolean): Promise<Row[]> {
  const chosen = budgets.filter(({ name }) => wanted(name));
  if (chosen.length === 0) return [];
  await Promise.all([ours.prepare(), theirs.prepare()]);
  const rows: Row[] = [];
  for (const budget of chosen) rows.push(await compare(budget, ours, theirs));
  await Promise.all([ours.clear(), theirs.clear()]);
  return rows;
}
