import assert from 'node:assert/strict';
import { duplexPair } from 'node:stream';
import { suite, test } from 'node:test';

import { mutationsOf } from '@gantry/testing/cluster/mutations.ts';
import { Type, type TSchema } from 'typebox';

import { parseBoundedJson, UnboundedJsonError } from '../../lib/bounded-json.ts';
import { systemClock } from '../../lib/clock.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';
import { FROM_NODE_LIMITS } from './allowance.ts';
import { Channel } from './channel.ts';
import { LogPublication, LogRequest, PublishedLog, ReadLog } from './log-messages.ts';
import * as sessionSchemas from './schemas.ts';

const schemas = { ...sessionSchemas, LogPublication, LogRequest, PublishedLog, ReadLog };

const ID = 'n'.repeat(25);
const NOW = '2026-01-01T00:00:00Z';
const ADDRESS = '192.0.2.1:2377';
const URL = 'https://192.0.2.1:2378';
const DIGEST = 'a1'.repeat(32);
const TLS = { root: DIGEST, issuer: DIGEST };
const raft = {
  snapshotInterval: 1,
  keepOldSnapshots: 0,
  logEntriesForSlowFollowers: 0,
  heartbeatTick: 1,
  electionTick: 9,
};
const port = { protocol: 'tcp', targetPort: 80, publishedPort: 8080 };
const managers = [{ id: ID, address: ADDRESS }];

const description = {
  hostname: 'host',
  platform: { architecture: 'x86_64', os: 'linux' },
  resources: { nanoCpus: 1, memoryBytes: 1, generic: [{ kind: 'SSD', amount: 1 }] },
  engine: { version: '1', labels: { a: 'b' }, plugins: [{ type: 'Volume', name: 'local' }] },
  features: ['mounts'],
};
const status = {
  ...{ state: 'running', timestamp: NOW, message: 'started', error: 'none', startedAt: NOW },
  container: { id: ID, pid: 1, exitCode: 0 },
  ports: [port],
};
const template = {
  container: {
    ...{ image: 'busybox', command: ['a'], args: ['b'], env: ['c=d'], dir: '/', user: 'root', labels: { a: 'b' } },
    stopGracePeriodNs: 1,
    mounts: [
      {
        ...{ type: 'volume', source: 'v', target: '/v', readOnly: true, propagation: 'rslave' },
        volume: { noCopy: true, labels: { a: 'b' }, driver: { name: 'local', options: { a: 'b' } } },
      },
    ],
  },
  resources: { limits: { nanoCpus: 1, memoryBytes: 1 }, reservations: { nanoCpus: 1, memoryBytes: 1 } },
  logDriver: { name: 'json-file', options: { a: 'b' } },
  networks: [{ target: ID, aliases: ['www'] }],
  ports: [port],
};
const assignment = {
  ...{ id: ID, service: ID, serviceName: 'web', slot: 1, desired: 'running', template: 't' },
  addresses: [{ network: ID, address: '10.0.1.5/24' }],
  generic: [{ kind: 'GPU', name: 'one' }],
};
const network = {
  ...{ id: ID, name: 'front', createdAt: NOW, labels: { a: 'b' }, options: { a: 'b' }, internal: false },
  ...{ ingress: false, vni: 4097, attachable: true },
  subnets: [{ subnet: '10.0.1.0/24', gateway: '10.0.1.1', range: '10.0.1.0/25', auxiliary: { printer: '10.0.1.2' } }],
};

const options = { stdout: true, stderr: false, follow: true, tail: 5, since: NOW };
const time = '2026-01-01T00:00:00.000000000Z';
const line = { say: 'line', task: ID, stream: 'stderr', time, attributes: { a: 'b' }, text: 'aGkK' };

/** A sample with all fields for each schema, and for each message of a union. */
const SAMPLES: Readonly<Record<string, readonly object[]>> = {
  RootAnswer: [{ certificate: 'c' }],
  CertificateRequest: [{ publicKey: 'p', csr: 'c', token: 't' }],
  CertificateAnswer: [{ nodeId: ID, clusterId: ID, role: 'worker', certificate: 'c', issuer: DIGEST }],
  PeerRequest: [{ address: ADDRESS, url: URL, publicKey: 'p' }],
  PeerAnswer: [
    { members: [{ name: ID, peerUrl: URL }], certificate: 'c', ca: 'c', crl: '', raft, unlockKey: 'k', dataKey: 'k' },
  ],
  Nothing: [{}],
  WriteRequest: [{ write: 'removeService', args: 'web' }],
  WriteAnswer: [{ result: 'r', revision: 1 }],
  OutageRequest: [{ step: 'begin' }],
  OutageAnswer: [{ granted: true }],
  Refusal: [{ kind: 'conflict', message: 'm', leader: ADDRESS }],
  FromNode: [
    {
      say: 'hello',
      description,
      address: '192.0.2.1',
      dataPath: '192.0.2.2',
      tls: TLS,
      syncs: true,
      files: true,
      logs: true,
    },
    { say: 'beat' },
    { say: 'tls', tls: TLS },
    { say: 'report', number: 1, tasks: [{ id: ID, status }] },
    { say: 'wantFile', task: ID, kind: 'secret', id: ID },
    { say: 'attachments', wanted: [{ id: ID, network: 'front', name: 'c', aliases: ['www'], ip: '10.0.1.6' }] },
    { say: 'withdrawing', number: 1, network: ID },
    { say: 'synced', number: 1 },
  ],
  FromLeader: [
    {
      say: 'welcome',
      periodMs: 5000,
      managers,
      role: 'worker',
      syncs: true,
      files: true,
      hasEtcd: true,
      tunnelPort: 4789,
    },
    { say: 'managers', managers },
    { say: 'period', periodMs: 5000 },
    { say: 'role', role: 'manager' },
    { say: 'renew' },
    { say: 'trust', root: 'r', issuer: DIGEST },
    { say: 'beat' },
    {
      say: 'tasks',
      templates: { t: template },
      tasks: [{ assignment, state: 'assigned', auth: 'e30=' }],
      gone: [ID],
    },
    { say: 'allTasks' },
    { say: 'ack', number: 1 },
    {
      ...{ say: 'file', task: ID, kind: 'config', id: ID, data: 'eA==', refusal: 'r' },
      templating: { name: 'golang', serviceLabels: { a: 'b' } },
    },
    { say: 'networks', ids: [ID] },
    { say: 'network', news: { id: ID, whole: { network, local: '192.0.2.1' }, members: [{}], gone: [ID] } },
    { say: 'sync', number: 1 },
    { say: 'withdrawn', number: 1 },
    { say: 'unattached', id: ID, kind: 'failed', reason: 'r' },
    { say: 'logs', number: 1, options, tasks: [{ id: ID, after: NOW }] },
  ],
  LogPublication: [{ number: 1 }],
  LogRequest: [{ service: ID, task: ID, options }],
  PublishedLog: [line, { say: 'unreadable', task: ID, reason: 'r' }, { say: 'sent' }],
  ReadLog: [
    { ...line, node: ID, service: ID },
    { say: 'end', missing: ['m'] },
  ],
};

type Variant = TSchema & Readonly<{ properties?: Readonly<{ say?: { const: string } }> }>;
type Union = TSchema & Readonly<{ anyOf?: readonly Variant[] }>;
type Check = ReturnType<typeof lazyCheck>;

/** As a request, or the answer to one, is read. */
function isTaken(check: Check, text: string): boolean {
  try {
    return check.Check(parseBoundedJson(text, FROM_NODE_LIMITS));
  } catch (error) {
    if (error instanceof UnboundedJsonError) return false;
    throw error;
  }
}

/** Sends a line to a session that knows one message; returns the reason of its end, or undefined where it was taken. */
async function refusal(variant: TSchema, line: string): Promise<string | undefined> {
  const [far, near] = duplexPair();
  let taken = 0;
  let reason: string | undefined;
  const channel = new Channel(near, {
    ...{ schema: Type.Union([variant]), limits: FROM_NODE_LIMITS, clock: systemClock },
    receive: () => (taken += 1),
    refused: (text) => (reason = text),
  });
  far.on('error', () => undefined).end(`${line}\n`);
  await channel.closed;
  assert.equal(taken, reason === undefined ? 1 : 0);
  return reason;
}

const OWN_WORDS = /^(?:in the message \w+ \S* must .+|a line is no JSON object|the message (?:".*|.* is unknown))$/;

suite('mutated messages on port 2377', { concurrency: true }, () => {
  test('each schema and each message of a session has a sample', () => {
    assert.deepEqual(Object.keys(SAMPLES).toSorted(), Object.keys(schemas).toSorted());
    for (const [title, schema] of Object.entries<Union>(schemas)) {
      const says = (schema.anyOf ?? []).map((variant) => variant.properties?.say?.const);
      const sampled = SAMPLES[title]!.map((sample) => ('say' in sample ? sample.say : undefined));
      if (says.length > 0) assert.deepEqual(sampled, says, title);
    }
  });

  test('each sample has all fields of its schema', () => {
    for (const [title, schema] of Object.entries<Union>(schemas)) {
      for (const [index, variant] of (schema.anyOf ?? [schema]).entries()) {
        assert.deepEqual(missingIn(variant, SAMPLES[title]![index]), [], `${title} ${index}`);
      }
    }
  });

  for (const [title, schema] of Object.entries<Union>(schemas)) {
    const check = lazyCheck(schema);
    for (const [index, sample] of (SAMPLES[title] ?? []).entries()) {
      const name = 'say' in sample ? `${title}: ${String(sample.say)}` : title;
      test(`${name}: mutations are refused, or harmless`, async () => {
        assert.ok(isTaken(check, JSON.stringify(sample)), 'the sample itself');
        for (const { name, text, mustFail } of mutationsOf(title, sample)) {
          const isIn = isTaken(check, text);
          if (mustFail) assert.equal(isIn, false, name);
          assert.equal(Object.hasOwn(Object.prototype, 'polluted'), false, name);
          if (schema.anyOf === undefined) continue;
          const reason = await refusal(schema.anyOf[index]!, text);
          assert.equal(reason === undefined, isIn, name);
          if (reason !== undefined) assert.match(reason, OWN_WORDS, name);
        }
      });
    }
  }
});

type Shape = TSchema & Readonly<{ properties?: Readonly<Record<string, Shape>>; items?: Shape }>;

/** Places of fields that a schema has and a sample does not: no mutation would reach them. */
function missingIn(schema: Shape, sample: unknown, place = ''): string[] {
  if (schema.items !== undefined) return missingIn(schema.items, (sample as unknown[])[0], `${place}/0`);
  return Object.entries(schema.properties ?? {}).flatMap(([key, field]) => {
    const value = (sample as Record<string, unknown>)[key];
    return value === undefined ? [`${place}/${key}`] : missingIn(field, value, `${place}/${key}`);
  });
}
