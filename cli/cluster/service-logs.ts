import * as cluster from '@gantry/client/cluster.ts';
import { ApiError, type Connection } from '@gantry/client/connection.ts';
import { readFrames } from '@gantry/client/frames.ts';

import { command } from '../command-line/command.ts';
import { timeOf } from '../command-line/values.ts';

const TIME = 'UNIX seconds, a date such as 2026-01-31T12:00:00Z, or how long ago, such as 10m';
const CONTEXT = 'com.docker.swarm.';
const SHORT_ID_LETTERS = 12;
const ERRORS = 3;

/** `gantry service logs`. */
export const serviceLogs = command({
  words: 'SERVICE|TASK',
  count: [1, 1],
  flags: {
    details: { kind: 'boolean', help: 'With the attributes selected by --log-opt' },
    follow: { kind: 'boolean', short: 'f', help: 'Follow the output, also of later tasks' },
    'no-resolve': { kind: 'boolean', help: 'Ids instead of names' },
    raw: { kind: 'boolean', help: 'The lines alone, without their tasks' },
    since: { kind: 'text', value: 'TIME', help: `From this time on: ${TIME}` },
    tail: { kind: 'text', short: 'n', value: 'LINES', initial: 'all', help: 'Only the last lines of each task' },
    timestamps: { kind: 'boolean', short: 't', help: 'With times' },
  },
  offers: 'service',
  examples: ['gantry service logs -f --since 10m web'],
  run: async ({ connection }, [ref = ''], { since, raw, 'no-resolve': isUnresolved, details, ...flags }) => {
    const path = await pathOf(connection, ref);
    const query = { stdout: true, stderr: true, ...flags, details: details || !raw, since: timeOf(since) };
    const sources = new Sources(connection, isUnresolved);
    for await (const { type, payload } of readFrames(await cluster.taskLogs(connection, path, query))) {
      if (type === ERRORS) throw new Error(payload.toString().trim());
      const output = type === 2 ? process.stderr : process.stdout;
      const text = raw ? payload : await shown(payload, sources, { ...flags, details });
      if (output.write(text)) continue;
      const { promise, resolve } = Promise.withResolvers<void>();
      output.once('drain', resolve);
      await promise;
    }
  },
});

/** The log of a service, else of a task. */
async function pathOf(connection: Connection, ref: string): Promise<`/${'services' | 'tasks'}/${string}`> {
  try {
    return `/services/${(await cluster.inspectService(connection, ref)).ID}`;
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
  }
  try {
    return `/tasks/${(await cluster.inspectTask(connection, ref)).ID}`;
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
    throw new Error(`no such task or service: ${ref}`, { cause: error });
  }
}

/** A line with its task before it: the attributes that say which one are in the line. */
async function shown(
  payload: Buffer,
  sources: Sources,
  { timestamps, details }: Readonly<{ timestamps: boolean; details: boolean }>,
): Promise<Buffer> {
  const timeEnd = timestamps ? payload.indexOf(' ') + 1 : 0;
  const end = payload.indexOf(' ', timeEnd) + 1;
  const attributes = new Map(new URLSearchParams(payload.toString('utf8', timeEnd, end - 1).replaceAll(',', '&')));
  const name = await sources.name(attributes.get(`${CONTEXT}task.id`) ?? '', attributes.get(`${CONTEXT}node.id`) ?? '');
  const own = [...attributes].filter(([key]) => !key.startsWith(CONTEXT)).map(([key, value]) => `${key}=${value}`);
  const before = `${payload.toString('utf8', 0, timeEnd)}${name}    | ${details ? `${own.join(',')} ` : ''}`;
  return Buffer.concat([Buffer.from(before), payload.subarray(end)]);
}

/** The names of tasks as they come. */
class Sources {
  readonly #connection: Connection;
  readonly #isUnresolved: boolean;
  readonly #names = new Map<string, string>();

  constructor(connection: Connection, isUnresolved: boolean) {
    this.#connection = connection;
    this.#isUnresolved = isUnresolved;
  }

  /** Such as `web.1.vsrhy1nlq3bm@host1`. */
  async name(task: string, node: string): Promise<string> {
    const known = this.#names.get(task) ?? (await this.#find(task, node));
    this.#names.set(task, known);
    return known;
  }

  /** Ids where something has been removed meanwhile. */
  async #find(id: string, node: string): Promise<string> {
    const short = id.slice(0, SHORT_ID_LETTERS);
    if (this.#isUnresolved) return `${short}@${node}`;
    try {
      const task = await cluster.inspectTask(this.#connection, id);
      const [{ Spec }, { Description }] = await Promise.all([
        cluster.inspectService(this.#connection, task.ServiceID),
        cluster.inspectNode(this.#connection, node),
      ]);
      return `${Spec.Name}.${task.Slot ?? node}.${short}@${Description.Hostname ?? node}`;
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return `${short}@${node}`;
      throw error;
    }
  }
}
