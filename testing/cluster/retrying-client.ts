import { setTimeout as sleep } from 'node:timers/promises';

import { eventually } from '../eventually.ts';
import type { ClusterHost } from './hosts.ts';
import { Services, SLEEPS, type TaskWire } from './services.ts';

/** How many of its services a client keeps: it removes older ones. */
const KEPT = 4;
/** Each of its services starts and ends a container: without a pause these would be most of a test's cost. */
const PAUSE_MS = 800;
/** Some ten seconds: what is under way at the end is completed, unless nobody answers any more. */
const ATTEMPTS_AFTER_END = 500;

type ServiceWire = { ID: string; Version: { Index: number }; Spec: { Name: string; Labels: Record<string, string> } };

/**
 * A client that makes, changes and removes services of a cluster, and sends what was not acknowledged again to the next
 * manager, until one says that it is done. What it has seen that must not be is in `problems`.
 */
export class RetryingClient {
  /** Made, and not removed. */
  readonly services = new Set<string>();
  readonly problems: string[] = [];
  /** Writes that a manager has acknowledged, and when the last one was. */
  acknowledged = 0;
  lastMs = performance.now();
  /** The longest time from one of them to the next. */
  gapMs = 0;
  /** Attempts without an answer that says whether it was done. */
  repeated = 0;
  readonly #hosts: readonly ClusterHost[];
  readonly #name: string;
  #at = 0;
  #count = 0;
  #isUnsure = false;
  #over: AbortSignal | undefined;

  constructor(hosts: readonly ClusterHost[], name: string) {
    this.#hosts = hosts;
    this.#name = name;
  }

  async run(over: AbortSignal): Promise<void> {
    this.#over = over;
    await this.#create(this.#counter);
    for (let at = 1; !over.aborted; at += 1) {
      await this.#create(`${this.#name}-${at}`);
      if (at > KEPT) await this.#remove(`${this.#name}-${at - KEPT}`);
      await this.#increment();
      await this.#lookForDoubled();
      await sleep(PAUSE_MS);
    }
  }

  /** Compares the cluster's services with the acknowledged changes. */
  async compare(manager: ClusterHost): Promise<void> {
    const { body } = await manager.engine.get<ServiceWire[]>('/services');
    const own = body.filter(({ Spec }) => Spec.Name.startsWith(`${this.#name}-`));
    const names = own.map(({ Spec }) => Spec.Name).toSorted();
    const wanted = [...this.services].toSorted();
    if (names.join() !== wanted.join())
      this.problems.push(`there are ${names.join()}, acknowledged were ${wanted.join()}`);
    const count = Number(own.find(({ Spec }) => Spec.Name === this.#counter)?.Spec.Labels.count);
    if (count !== this.#count) this.problems.push(`the count is ${count}, acknowledged was ${this.#count}`);
  }

  get #counter(): string {
    return `${this.#name}-counter`;
  }

  async #create(name: string): Promise<void> {
    const body = {
      Name: name,
      Labels: { count: '0' },
      TaskTemplate: { ContainerSpec: { Image: 'busybox', Command: SLEEPS, StopGracePeriod: 0 } },
    };
    let attempts = 0;
    await this.#untilDone(async ({ engine }) => {
      attempts += 1;
      const { status, raw } = await engine.post('/services/create', body);
      if (status !== 201 && status !== 409) return false;
      // An attempt before may have been stored without its answer.
      if (status === 409 && attempts === 1) this.problems.push(`${name}: ${raw.toString()}`);
      return true;
    });
    this.services.add(name);
  }

  async #remove(name: string): Promise<void> {
    let attempts = 0;
    await this.#untilDone(async ({ engine }) => {
      attempts += 1;
      const { status } = await engine.delete(`/services/${name}`);
      if (status !== 200 && status !== 404) return false;
      if (status === 404 && attempts === 1) this.problems.push(`${name} was made, and is not there`);
      return true;
    });
    this.services.delete(name);
  }

  /** Adds one to the count of a service: each version is replaced once, so that no repetition can count twice. */
  async #increment(): Promise<void> {
    this.#isUnsure = false;
    await this.#untilDone(async ({ engine }) => {
      const { status, body } = await engine.get<ServiceWire>(`/services/${this.#counter}`);
      if (status !== 200) return false;
      const count = Number(body.Spec.Labels.count);
      if (count === this.#count + 1 && this.#isUnsure) return true;
      if (count > this.#count) this.problems.push(`the count is ${count}, acknowledged was ${this.#count}`);
      if (count !== this.#count) return false; // without a quorum an older state is read
      this.#isUnsure = true;
      const Labels = { count: String(count + 1) };
      const path = `/services/${body.ID}/update?version=${body.Version.Index}`;
      return (await engine.post(path, { ...body.Spec, Labels })).status === 200;
    });
    this.#count += 1;
  }

  /** Asks one manager after the other. */
  async #untilDone(attempt: (host: ClusterHost) => Promise<boolean>): Promise<void> {
    for (let afterEnd = 0; ; afterEnd += this.#over?.aborted === true ? 1 : 0) {
      if (afterEnd > ATTEMPTS_AFTER_END) throw new Error('nobody answers any more');
      const host = this.#hosts[this.#at++ % this.#hosts.length]!;
      if (await attempt(host).catch(() => false)) break; // a daemon that is killed ends its connections
      this.repeated += 1;
      await sleep(20);
    }
    this.acknowledged += 1;
    this.gapMs = Math.max(this.gapMs, performance.now() - this.lastMs);
    this.lastMs = performance.now();
  }

  /** Slots with more than one task that is to run. */
  async #lookForDoubled(): Promise<void> {
    const host = this.#hosts[this.#at % this.#hosts.length]!;
    const tasks = await host.engine.get<TaskWire[]>('/tasks').catch(() => undefined);
    if (tasks?.status !== 200) return;
    const wanted = tasks.body.filter(({ DesiredState }) => DesiredState === 'running');
    const places = Map.groupBy(wanted, ({ ServiceID, Slot }) => `${ServiceID}/${Slot}`);
    for (const [place, group] of places) if (group.length > 1) this.problems.push(`${group.length} tasks of ${place}`);
  }
}

/** Ends the clients, and returns the defects that they met; each service left runs, and is removed. */
export async function finish(clients: readonly RetryingClient[], manager: ClusterHost): Promise<string[]> {
  for (const client of clients) await client.compare(manager);
  const services = new Services(manager);
  for (const name of clients.flatMap((client) => [...client.services])) {
    await services.running(name, 1);
    // The leader may change once more.
    await eventually(`the removal of ${name}`, async () => {
      const { status } = await manager.engine.delete(`/services/${name}`);
      return status === 200 || status === 404 ? true : undefined;
    });
  }
  return clients.flatMap(({ problems }) => problems);
}
