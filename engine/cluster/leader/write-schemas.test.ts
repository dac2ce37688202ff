import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { mutationsOf } from '@gantry/testing/cluster/mutations.ts';

import { parseBoundedJson, UnboundedJsonError } from '../../lib/bounded-json.ts';
import { EngineError } from '../../lib/errors.ts';
import { readNodeSpec } from '../nodes/update.ts';
import { readServiceSpec } from '../services/spec.ts';
import { readSpec } from '../swarm/spec.ts';
import { checkResult, checkWrite } from './write-schemas.ts';
import { WRITES } from './writes.ts';

const ContainerSpec = { Image: 'busybox' };
const service = readServiceSpec({
  Name: 'web',
  Labels: { a: 'b' },
  TaskTemplate: {
    ContainerSpec: {
      ...{ ...ContainerSpec, Command: ['a'], Args: ['b'], Env: ['c=d'], Dir: '/', User: 'root', Labels: { e: 'f' } },
      Mounts: [
        { Source: '/a', Target: '/b', BindOptions: { Propagation: 'rslave' } },
        { Type: 'volume', Target: '/c', VolumeOptions: { NoCopy: true, DriverConfig: { Name: 'local' } } },
      ],
      StopGracePeriod: 1e9,
    },
    Resources: { Limits: { NanoCPUs: 1e9 }, Reservations: { MemoryBytes: 1e8 } },
    RestartPolicy: { Condition: 'on-failure', Delay: 1, MaxAttempts: 2, Window: 3 },
    Placement: { Constraints: ['node.role == worker'] },
    LogDriver: { Name: 'json-file', Options: {} },
    ForceUpdate: 3,
  },
  Mode: { Replicated: { Replicas: 3 } },
  UpdateConfig: { Parallelism: 2, Delay: 1, FailureAction: 'rollback', Monitor: 1, MaxFailureRatio: 0.5 },
  RollbackConfig: { Order: 'start-first' },
  Networks: [{ Target: 'n1', Aliases: ['any text'] }],
  EndpointSpec: {
    Ports: [
      { TargetPort: 80, PublishedPort: 8080 },
      { TargetPort: 81, PublishMode: 'host' },
    ],
  },
});
const bare = readServiceSpec({ TaskTemplate: { ContainerSpec }, Mode: { Global: {} } });
const { template } = service;
const cluster = readSpec({
  CAConfig: { ExternalCAs: [{ URL: 'https://ca.example' }], NodeCertExpiry: 3.2e17 },
  Orchestration: { TaskHistoryRetentionLimit: -1 },
});
const node = readNodeSpec({ Role: 'worker', Availability: 'drain', Labels: { a: 'b' } });
const network = { name: 'front', labels: {}, options: {}, internal: false, ranges: [], attachable: false };
const secret = { kind: 'secret', name: 'one', labels: {}, sealed: 'c2VhbGVk' };
const update = { ref: 'web', version: 7 };
const tokens = { rotateWorker: false, rotateManager: true };

const GOOD: readonly [write: string, args: unknown][] = [
  ['createService', { spec: service, registryAuth: 'e30=' }],
  ['createService', { spec: bare }],
  ['updateService', { ...update, isRollback: false, spec: service }],
  ['removeService', 'web'],
  ['updateNode', { ...update, spec: node }],
  ['removeNode', { ref: 'n1', force: true }],
  ['updateCluster', { version: 1, spec: cluster, ...tokens }],
  ['createSecret', secret],
  ['createSecret', { ...secret, templating: { name: 'golang', options: {} } }],
  ['updateSecret', { kind: 'config', ref: 'one', version: 7, labels: {} }],
  ['removeSecret', { kind: 'secret', ref: 'one' }],
  ['createNetwork', network],
  ['removeNetwork', { id: 'n1' }],
];

const BAD: readonly [write: string, args: unknown][] = [
  ['createService', {}],
  ['createService', { spec: { ...service, name: 'a/b' } }],
  ['createService', { spec: { ...service, labels: { a: 1 } } }],
  ['createService', { spec: { ...service, mode: { kind: 'replicated', replicas: -1 } } }],
  ['createService', { spec: { ...service, networks: [{ target: '../x', aliases: [] }] } }],
  ['createService', { spec: { ...service, template: { ...template, constraints: ['no operator'] } } }],
  ['createService', { spec: { ...service, template: { ...template, restart: { condition: 'odd', maxAttempts: 0 } } } }],
  ['createService', { spec: { ...service, template: { ...template, container: { image: 7 } } } }],
  ['createService', { spec: { ...service, update: { ...service.update, maxFailureRatio: 2 } } }],
  ['createService', { spec: { ...service, endpoint: { mode: 'vip', ports: [{ protocol: 'tcp' }] } } }],
  ['updateService', { ...update, version: 'x', isRollback: false, spec: service }],
  ['removeService', { ref: 'web' }],
  ['updateNode', { ...update, spec: { ...node, role: 'root' } }],
  ['updateNode', { ...update }],
  ['removeNode', { ref: 1, force: true }],
  ['updateCluster', { version: 1, spec: { ...cluster, heartbeatPeriodNs: 0 }, ...tokens }],
  ['updateCluster', { version: 1, spec: { ...cluster, nodeCertExpiryNs: 1 }, ...tokens }],
  ['updateCluster', { version: 1, spec: null, ...tokens }],
  ['createSecret', { ...secret, kind: 'node' }],
  ['createSecret', { ...secret, name: '../x' }],
  ['createSecret', { ...secret, sealed: '' }],
  ['createSecret', { ...secret, sealed: 'not base64' }],
  ['updateSecret', { kind: 'secret', ref: 'one', version: 7, labels: null }],
  ['removeSecret', { kind: 'service', ref: 'one' }],
  ['createNetwork', { name: 'front' }],
  ['removeNetwork', null],
];

suite('writes that another manager forwards', () => {
  test('each one has rules', () => {
    assert.deepEqual(new Set(GOOD.map(([write]) => write)), new Set(Object.keys(WRITES)));
  });

  for (const [write, args] of GOOD) {
    test(`${write} takes the API's form of a client's request: ${JSON.stringify(args).slice(0, 80)}`, () => {
      checkWrite({ write, args: JSON.parse(JSON.stringify(args)) });
    });
  }

  for (const [write, args] of BAD) {
    test(`${write} refuses ${JSON.stringify(args).slice(0, 400)}`, () => {
      assert.throws(() => checkWrite({ write, args }), {
        kind: 'invalid',
        message: /of another manager is not understood/,
      });
    });
  }

  for (const [write, args] of GOOD) {
    if (typeof args !== 'object' || args === null) continue;
    test(`${write}: mutations of ${JSON.stringify(args).slice(0, 80)} are refused, or harmless`, () => {
      for (const { name, text, mustFail } of mutationsOf(write, args)) {
        assert.equal(isTaken(write, text) && mustFail, false, name);
        assert.equal(Object.hasOwn(Object.prototype, 'polluted'), false, name);
      }
    });
  }

  for (const write of ['x', 'toString', '__proto__', '']) {
    test(`the unknown name ${JSON.stringify(write)} is refused`, () => {
      assert.throws(() => checkWrite({ write, args: {} }), { kind: 'notImplemented' });
    });
  }

  test('the leader answers with an id', () => {
    checkResult('createService', 'n1');
    checkResult('createNetwork', { id: 'n1' });
    checkResult('removeService', undefined);
    for (const [write, result] of [
      ['createService', undefined],
      ['createService', '../x'],
      ['createNetwork', 'n1'],
    ] as const) {
      assert.throws(() => checkResult(write, result), { kind: 'failed' });
    }
  });
});

function isTaken(write: string, text: string): boolean {
  try {
    checkWrite({ write, args: parseBoundedJson(text) });
    return true;
  } catch (error) {
    if (error instanceof UnboundedJsonError) return false;
    if (!(error instanceof EngineError)) throw error;
    assert.match(error.message, /of another manager is not understood: .*must /);
    return false;
  }
}
