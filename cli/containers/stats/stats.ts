import { ApiError, type Connection } from '@gantry/client/connection.ts';
import * as containers from '@gantry/client/containers.ts';
import { jsonLines } from '@gantry/client/json-lines.ts';
import * as system from '@gantry/client/system.ts';

import { command, MANY } from '../../command-line/command.ts';
import { UsageError } from '../../exit-codes.ts';
import { listTexts } from '../../output/format.ts';
import { NO_TRUNC } from '../../output/list-flags.ts';
import { COLUMNS, figuresOf, ORDERS, rowOf, TITLES, type Watched } from './stats-row.ts';

/** How often a table is drawn; the engine has new figures once a second. */
const DRAW_MS = 500;
const HOME = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';
const CLEAR_ALL = '\u001b[2J';

/** `gantry stats`. */
export const stats = command({
  words: '[CONTAINER...]',
  count: [0, MANY],
  flags: {
    all: { kind: 'boolean', short: 'a', help: 'Also stopped containers' },
    format: { kind: 'text', value: 'FORMAT', help: 'json, a template such as {{.Name}}, or: table TEMPLATE' },
    'no-stream': { kind: 'boolean', help: 'Only one sample' },
    'no-trunc': NO_TRUNC,
    sort: {
      kind: 'text',
      value: 'COLUMN',
      help: 'Sort by name, or by cpu, memory, net, block or pids: the largest first; without it as named, or by name',
      offers: Object.keys(ORDERS),
    },
  },
  offers: 'container',
  about: 'Fields of templates: .Container .ID .Name .CPUPerc .MemUsage .MemPerc .NetIO .BlockIO .PIDs',
  examples: ['gantry stats --sort memory', "gantry stats --no-stream --format '{{.Name}}: {{.CPUPerc}}' web"],
  run: async ({ connection }, refs, flags) => {
    const { all, format, sort = refs.length > 0 ? 'given' : 'name' } = flags;
    const order = sort === 'given' ? (): number => 0 : ORDERS[sort];
    if (order === undefined)
      throw new UsageError(`invalid column "${sort}": expected ${Object.keys(ORDERS).join(', ')}`);
    const text = async (watched: Iterable<Watched>): Promise<string> => {
      const rows = [...watched].toSorted(order).map((one) => rowOf(one, { whole: flags['no-trunc'] }));
      return (await listTexts({ titles: TITLES, columns: COLUMNS, rows }, format)).join('\n');
    };
    if (flags['no-stream']) {
      const shown = await text(await once(connection, refs, all));
      if (shown !== '') console.log(shown);
      return;
    }
    using watching = new Watching(connection);
    if (refs.length > 0) await watching.named(refs);
    else await watching.everyone({ all });
    await draw(watching, text);
  },
});

/** One sample of each; without names, of all containers that still exist. */
async function once(engine: Connection, refs: readonly string[], all: boolean): Promise<Watched[]> {
  const wanted = refs.length > 0 ? refs : (await containers.list(engine, { all })).map(({ Id }) => Id);
  const samples = wanted.map(async (ref): Promise<Watched[]> => {
    try {
      const sample = await containers.stats(engine, ref);
      return [{ ref, id: sample.id, name: nameOf(sample), figures: figuresOf(sample) }];
    } catch (error) {
      if (refs.length > 0 || !isGone(error)) throw error;
      return [];
    }
  });
  return (await Promise.all(samples)).flat();
}

/** Redraws the table until no container is watched any more, or the reader has gone. */
async function draw(watching: Watching, text: (watched: Iterable<Watched>) => Promise<string>): Promise<void> {
  const isTerminal = process.stdout.isTTY;
  const left = new AbortController();
  process.stdout.once('error', () => left.abort()); // such as `head`
  if (isTerminal) process.stdout.write(CLEAR_ALL);
  await watching.first;
  while (!left.signal.aborted) {
    const shown = await text(watching.list.values());
    if (isTerminal) {
      const lines = shown.split('\n').map((line) => `${line}${CLEAR_LINE}\n`);
      process.stdout.write(`${HOME}${lines.join('')}${CLEAR_BELOW}`);
    } else {
      process.stdout.write(`${shown}\n`);
    }
    watching.check();
    if (watching.isOver) return;
    await watching.pause(isTerminal ? DRAW_MS : DRAW_MS * 2);
  }
}

/** The watched containers, each with a stream of samples. */
class Watching implements Disposable {
  readonly list = new Map<string, Watched>();
  readonly #engine: Connection;
  readonly #left = new AbortController();
  readonly #first = Promise.withResolvers<void>();
  readonly #streams = new Map<string, AbortController>();
  readonly #awaited = new Set<string>();
  #followsAll = false;
  #failures: unknown[] = [];

  constructor(engine: Connection) {
    this.#engine = engine;
  }

  /** Resolves when every container has its first figures, or will have none. */
  get first(): Promise<void> {
    return this.#first.promise;
  }

  /** Whether no stream is open, and none will be. */
  get isOver(): boolean {
    return this.#streams.size === 0 && !this.#followsAll;
  }

  /** Throws the first failure of a stream. */
  check(): void {
    if (this.#failures.length > 0) throw this.#failures[0];
  }

  /** Throws for a missing one. */
  async named(refs: readonly string[]): Promise<void> {
    for (const ref of refs) await containers.inspect(this.#engine, ref);
    for (const ref of refs) this.#add(ref);
  }

  /** Every container, also later ones; ended ones leave the table, unless all are wanted. */
  async everyone({ all }: { all: boolean }): Promise<void> {
    this.#followsAll = true;
    const filters = JSON.stringify({ type: ['container'], event: ['create', 'start', 'die', 'destroy', 'rename'] });
    const events = await system.events(this.#engine, { filters });
    this.#left.signal.addEventListener('abort', () => events.destroy());
    const known = await containers.list(this.#engine, { all });
    for (const { Id } of known) this.#add(Id);
    if (known.length === 0) this.#first.resolve();
    void this.#follow(jsonLines<system.EventMessage>(events.on('error', () => undefined)), all);
  }

  async pause(milliseconds: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    setTimeout(resolve, milliseconds);
    await promise;
  }

  [Symbol.dispose](): void {
    this.#left.abort();
    for (const stream of this.#streams.values()) stream.abort();
  }

  async #follow(events: AsyncIterable<system.EventMessage>, all: boolean): Promise<void> {
    try {
      for await (const { Action, Actor } of events) {
        if (Action === 'start' || (all && Action === 'create')) this.#add(Actor.ID);
        else if (Action === 'destroy' || (!all && Action === 'die')) this.#remove(Actor.ID);
      }
    } catch (error) {
      if (!this.#left.signal.aborted) this.#failures.push(error);
    }
    this.#followsAll = false;
  }

  #add(ref: string): void {
    if (this.#streams.has(ref)) return;
    const stream = new AbortController();
    this.#streams.set(ref, stream);
    this.#awaited.add(ref);
    this.list.set(ref, { ref, id: ref, name: NO_NAME, figures: undefined });
    void this.#read(ref, stream.signal).finally(() => this.#remove(ref));
  }

  #remove(ref: string): void {
    this.#streams.get(ref)?.abort();
    this.#streams.delete(ref);
    this.list.delete(ref);
  }

  async #read(ref: string, signal: AbortSignal): Promise<void> {
    try {
      const stream = await containers.statsStream(this.#engine, ref, signal);
      for await (const sample of jsonLines<containers.Stats>(stream)) {
        this.list.set(ref, { ref, id: sample.id, name: nameOf(sample), figures: figuresOf(sample) });
        this.#answered(ref);
      }
    } catch (error) {
      if (!signal.aborted && !isGone(error)) this.#failures.push(error);
    }
    this.#answered(ref);
  }

  #answered(ref: string): void {
    this.#awaited.delete(ref);
    if (this.#awaited.size === 0) this.#first.resolve();
  }
}

const NO_NAME = '--';

function isGone(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

function nameOf({ name }: containers.Stats): string {
  return name.replace(/^\//, '');
}
