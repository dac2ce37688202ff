import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { EventMessage } from '../../events/schema.ts';
import type { Inspect } from '../schema.ts';

type Policy = { Name: string; MaximumRetryCount?: number };

/** Delays double from 100 ms: the fifth lasts 1.6 s, the ninth 26 s, which is enough for a request on any machine. */
const FIRST_DELAY = 5;
const LAST_DELAY = 9;
const ALWAYS: Policy = { Name: 'always' };

/** One container of one engine. */
class Restarting {
  readonly #api: Api;
  readonly #name: string;

  constructor(api: Api, name: string) {
    this.#api = api;
    this.#name = name;
  }

  async start(command: string, policy: Policy): Promise<void> {
    await this.#api.post(`/containers/create?name=${this.#name}`, {
      Image: 'busybox',
      Cmd: ['sh', '-c', command],
      HostConfig: { NetworkMode: 'none', RestartPolicy: policy },
    });
    await this.post('start');
  }

  async post(path: string, body?: unknown): Promise<number> {
    return (await this.#api.post(`/containers/${this.#name}/${path}`, body)).status;
  }

  /** dockerd refuses an update of a process that is just ending. */
  async update(policy: Policy): Promise<void> {
    const deadline = Date.now() + 120_000;
    while ((await this.post('update', { RestartPolicy: policy })) !== 200) assert.ok(Date.now() < deadline);
  }

  async remove(): Promise<void> {
    await this.#api.delete(`/containers/${this.#name}?force=1`);
  }

  async until(isSo: (container: Inspect) => boolean): Promise<Inspect> {
    const deadline = Date.now() + 180_000;
    for (;;) {
      const { body } = await this.#api.get<Inspect>(`/containers/${this.#name}/json`);
      if (isSo(body)) return body;
      assert.ok(Date.now() < deadline, `${this.#name} is ${JSON.stringify([body.RestartCount, body.State])}`);
      await setTimeout(20);
    }
  }

  /** Resolves in the delay after so many runs. */
  async inDelay(runs: number): Promise<void> {
    await this.until(({ RestartCount, State }) => RestartCount >= runs && State.Restarting);
  }

  async ended(): Promise<Inspect> {
    return await this.until(({ State }) => State.Status === 'exited');
  }

  async shown(): Promise<unknown> {
    const { RestartCount, State, HostConfig } = await this.until(() => true);
    const { Status, Running, Restarting: isBetween, ExitCode, Error: error } = State;
    return [RestartCount, Status, Running, isBetween, ExitCode, error, HostConfig.RestartPolicy];
  }

  async events(): Promise<string[]> {
    const filters = encodeURIComponent(JSON.stringify({ container: [this.#name] }));
    const { raw } = await this.#api.get(`/events?since=1&until=${Date.now() / 1000}&filters=${filters}`);
    const lines = raw.toString().split('\n').filter(Boolean);
    return lines.map((line) => {
      const { Action, Actor } = JSON.parse(line) as EventMessage;
      return `${Action}${Actor.Attributes.exitCode ?? ''}`;
    });
  }

  async sinceLastStart(): Promise<string[]> {
    const events = await this.events();
    return events.slice(events.lastIndexOf('start'));
  }
}

suite('restart policies are as those of dockerd', { concurrency: true }, () => {
  let ours: TestEngine;
  let dockerd: Dockerd;
  before(async () => {
    [ours, dockerd] = await Promise.all([TestEngine.start(), Dockerd.start()]);
    await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
  });
  after(async () => {
    await dockerd[Symbol.asyncDispose]();
    await ours[Symbol.asyncDispose]();
  });

  /** A test whose work is done with both engines. */
  function same(name: string, work: (container: Restarting, api: Api) => Promise<unknown>): void {
    test(name, async () => {
      const call = name.replaceAll(/\W+/g, '-');
      const [own, theirs] = await Promise.all(
        [ours, dockerd.api].map(async (api) => await work(new Restarting(api, call), api)),
      );
      assert.deepEqual(own, theirs);
    });
  }

  for (const [path, events] of [
    ['stop', ['start', 'die3', 'stop']],
    ['kill', ['start', 'die3']],
  ] as const) {
    same(`a ${path} in the delay is the end`, async (container, api) => {
      for (let runs = FIRST_DELAY; runs <= LAST_DELAY; runs += 1) {
        const other = new Restarting(api, `beside-${path}-${runs}`);
        await Promise.all([container, other].map(async (one) => await one.start('exit 3', ALWAYS)));
        await container.inDelay(runs);
        const status = await container.post(path);
        const isMet = !(await container.sinceLastStart()).includes('kill');
        if (isMet) await other.inDelay(runs + 2); // its delay would have been over long ago
        const shown = [status, await container.shown(), await container.sinceLastStart()];
        assert.deepEqual(isMet ? shown[2] : events, events);
        await Promise.all([container.remove(), other.remove()]);
        if (isMet) return shown;
      }
      return assert.fail('no delay was long enough');
    });
  }

  same('a start in the delay is for nothing', async (container) => {
    await container.start('exit 3', { Name: 'on-failure', MaximumRetryCount: LAST_DELAY });
    for (let runs = FIRST_DELAY; runs <= LAST_DELAY; runs += 1) {
      await container.inDelay(runs);
      const before = (await container.events()).length;
      const status = await container.post('start');
      if ((await container.events()).length === before) return status;
    }
    return assert.fail('no delay was long enough');
  });

  same('a restart in the delay begins anew', async (container) => {
    await container.start('exit 3', { Name: 'on-failure', MaximumRetryCount: FIRST_DELAY });
    await container.inDelay(FIRST_DELAY - 1);
    const status = await container.post('restart');
    await container.ended();
    return [status, await container.shown()];
  });

  same('on-failure counts, and begins anew with a start by a user', async (container) => {
    await container.start('exit 3', { Name: 'on-failure', MaximumRetryCount: 2 });
    await container.ended();
    const first = await container.shown();
    const status = await container.post('start');
    const isLast = ({ RestartCount, State }: Inspect): boolean => RestartCount === 2 && State.Status === 'exited';
    await container.until(isLast);
    return [first, status, await container.shown(), await container.events()];
  });

  same('on-failure leaves a success alone', async (container) => {
    await container.start('exit 0', { Name: 'on-failure' });
    await container.ended();
    return [await container.shown(), await container.events()];
  });

  same('an update in the delay counts from the next end on', async (container) => {
    await container.start('exit 3', ALWAYS);
    await container.inDelay(3);
    await container.update({ Name: 'no' });
    const { RestartCount } = await container.ended();
    const events = await container.events();
    const starts = events.filter((event) => event === 'start').length;
    return [starts - RestartCount, ((await container.shown()) as unknown[]).slice(1)];
  });

  same('an update to fewer starts than there were ends them', async (container) => {
    await container.start('exit 3', { Name: 'on-failure', MaximumRetryCount: 9 });
    await container.inDelay(3);
    await container.update({ Name: 'on-failure', MaximumRetryCount: 2 });
    await container.ended();
    return ((await container.shown()) as unknown[]).slice(1);
  });

  same('an update of one that has ended starts nothing', async (container) => {
    await container.start('exit 3', { Name: 'no' });
    await container.ended();
    await container.update(ALWAYS);
    return [await container.shown(), await container.events()];
  });
});
