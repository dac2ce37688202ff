import assert from 'node:assert/strict';
import { test } from 'node:test';

import { answeringManager, root } from '@gantry/testing/cluster/answering-manager.ts';

import { systemClock, type Clock } from '../../lib/clock.ts';
import { Background } from '../../lib/concurrency/background.ts';
import { EngineError } from '../../lib/errors.ts';
import { issue, newKey } from '../ca/certificates.ts';
import type { Identity } from './identity.ts';
import { Member, type MemberNeeds } from './member.ts';

test('a node that becomes a manager asks the others, not itself', () => {
  const managers = [
    { id: 'itself', address: '10.0.0.1:2377' },
    { id: 'other', address: '10.0.0.2:2377' },
  ];
  const identity = { nodeId: 'itself', advertise: '10.0.0.1:2377', managers } as unknown as Identity;
  const needs = { clock: systemClock, begun: () => undefined } as unknown as MemberNeeds;

  const member = new Member(needs, identity);

  assert.deepEqual(member.managers, ['10.0.0.2:2377']);
});

/** A clock of which the test itself lets time pass. */
class HeldClock implements Clock {
  readonly #held = new Map<() => void, number>();
  #now = systemClock.now();

  now(): Temporal.Instant {
    return this.#now;
  }

  after(milliseconds: number, callback: () => void): Disposable {
    this.#held.set(callback, this.#now.epochMilliseconds + milliseconds);
    return { [Symbol.dispose]: () => void this.#held.delete(callback) };
  }

  /** Returns how many callbacks were due. */
  pass(hours: number): number {
    let due = 0;
    this.#now = this.#now.add({ seconds: Math.round(hours * 3600) });
    for (const [callback, at] of this.#held) {
      if (at > this.#now.epochMilliseconds) continue;
      due += 1;
      this.#held.delete(callback);
      callback();
    }
    return due;
  }
}

test('a certificate is renewed in the second half of its life, and again a minute after a failure', async () => {
  await using parts = new AsyncDisposableStack();
  const clock = new HeldClock();
  const nodeId = 'n'.repeat(25);
  const HOURS = 100;
  const certificate = (publicKey: string): string =>
    issue(root, {
      subject: { name: nodeId, unit: 'swarm-worker', organization: 'cluster' },
      publicKey,
      now: clock.now(),
      lifeSeconds: HOURS * 3600,
    });
  let fails = false;
  const address = await answeringManager(parts, '/v1/certificates', (body) => {
    if (fails) throw new EngineError('failed', 'no authority signs');
    const { publicKey } = body as { publicKey: string };
    return { nodeId, clusterId: 'c'.repeat(25), role: 'worker', certificate: certificate(publicKey) };
  });
  const first = newKey();
  const identity = {
    ...{ nodeId, role: 'worker', root: root.certificate, advertise: '10.0.0.9:2377' },
    ...{ certificate: certificate(first.publicKey), key: first.privateKey },
    managers: [{ id: 'other', address }],
  } as unknown as Identity;
  const failures: string[] = [];
  const failed = Promise.withResolvers<void>();
  const log = {
    error: (_: object, message: string): void => {
      failures.push(message);
      failed.resolve();
    },
  };
  let written = Promise.withResolvers<Identity>();
  const folder = { write: (now: Identity): void => written.resolve(now) };
  const background = new Background(clock, log);
  const needs = { clock, background, folder, begun: () => undefined } as unknown as MemberNeeds;
  const member = new Member(needs, identity);
  parts.use(member.client);

  await member.renew();
  const second = await written.promise;
  written = Promise.withResolvers();
  assert.equal(clock.pass(0.4 * HOURS), 0);
  assert.equal(clock.pass(0.5 * HOURS), 1);
  const third = await written.promise;
  fails = true;
  clock.pass(0.9 * HOURS);
  await failed.promise;
  fails = false;
  written = Promise.withResolvers();
  clock.pass(1 / 60); // the pause
  clock.pass(0); // the renewal, which is overdue
  const fourth = await written.promise;

  assert.deepEqual(failures, ['background work failed: renew the certificate']);
  assert.equal(new Set([identity, second, third, fourth].map(({ certificate: text }) => text)).size, 4);
  assert.equal(member.identity.certificate, fourth.certificate);
  assert.notEqual(fourth.key, first.privateKey);
});
