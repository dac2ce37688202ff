import { Type, type Static, type TSchema } from 'typebox';

import { EngineError } from '../../lib/errors.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';
import {
  ClusterNameField,
  CountField,
  IdField,
  IntegerField,
  MAX_INT64,
  PortField,
} from '../../lib/notations/field-schemas.ts';
import { NewNetwork } from '../networks/create.ts';
import { parseConstraint } from '../scheduler/constraint.ts';
import { MAX_REPLICAS } from '../services/spec.ts';
import { NodeTemplate } from '../wire/task-messages.ts';

/**
 * The table of writes: callers and operations take their types from it, and the leader checks by it what another manager
 * forwards. `readServiceSpec` and its like have made the arguments there, and these schemas keep their rules here.
 */
const optional = Type.Optional;
const text = Type.String();
const Labels = Type.Record(text, text);
const oneOf = <const T extends string>(...values: readonly T[]) =>
  Type.Unsafe<T>(Type.Union(values.map((value) => Type.Literal(value))));

const Constraint = Type.Refine(text, isConstraint, () => 'must be a constraint');
const LogDriver = Type.Object({ name: text, options: Labels });
const { container, resources } = NodeTemplate.properties;

const TaskTemplate = Type.Object({
  container,
  logDriver: optional(LogDriver),
  resources,
  restart: optional(
    Type.Object({
      condition: oneOf('none', 'on-failure', 'any'),
      delayNs: optional(CountField),
      maxAttempts: CountField,
      windowNs: optional(CountField),
    }),
  ),
  constraints: optional(Type.Array(Constraint)),
  placement: optional(
    Type.Object({
      spreadOver: optional(Type.Array(text)),
      maxReplicas: optional(CountField),
      platforms: optional(Type.Array(Type.Object({ architecture: text, os: text }))),
    }),
  ),
  forceUpdate: optional(CountField),
});

const UpdateConfig = Type.Object({
  parallelism: CountField,
  delayNs: CountField,
  failureAction: oneOf('pause', 'continue', 'rollback'),
  monitorNs: optional(CountField),
  maxFailureRatio: optional(Type.Number({ minimum: 0, maximum: 1 })),
  order: optional(oneOf('stop-first', 'start-first')),
});

const Replicas = Type.Integer({ minimum: 0, maximum: MAX_REPLICAS });

const ServiceSpec = Type.Object({
  name: Type.Union([ClusterNameField, Type.Literal('')]),
  labels: Labels,
  template: TaskTemplate,
  mode: Type.Union([
    Type.Object({ kind: Type.Literal('replicated'), replicas: Replicas }),
    Type.Object({ kind: Type.Literal('global') }),
    Type.Object({ kind: Type.Literal('replicated-job'), maxConcurrent: Replicas, totalCompletions: Replicas }),
    Type.Object({ kind: Type.Literal('global-job') }),
  ]),
  update: optional(UpdateConfig),
  rollback: optional(UpdateConfig),
  hasTaskNetworks: optional(Type.Literal(true)),
  networks: Type.Array(Type.Object({ target: IdField, aliases: Type.Array(text), driverOpts: optional(Labels) })),
  endpoint: optional(
    Type.Object({
      mode: oneOf('vip', 'dnsrr'),
      ports: Type.Array(
        Type.Object({
          name: optional(text),
          protocol: oneOf('tcp', 'udp'),
          targetPort: PortField,
          publishedPort: PortField,
          mode: optional(Type.Literal('host')),
        }),
      ),
    }),
  ),
});

const ClusterSpec = Type.Object({
  name: Type.Literal('default'),
  labels: Labels,
  taskHistoryRetentionLimit: IntegerField,
  raft: Type.Object({
    snapshotInterval: CountField,
    keepOldSnapshots: CountField,
    logEntriesForSlowFollowers: CountField,
    heartbeatTick: CountField,
    electionTick: CountField,
  }),
  heartbeatPeriodNs: Type.Integer({ exclusiveMinimum: 0, maximum: MAX_INT64 }),
  nodeCertExpiryNs: Type.Integer({ minimum: 3600e9, maximum: MAX_INT64 }),
  externalCas: Type.Array(
    Type.Object({
      protocol: Type.Literal('cfssl'),
      url: Type.Refine(
        text,
        (url) => /^https?:\/\//.test(url) && URL.canParse(url),
        () => 'must be a URL',
      ),
      options: Labels,
      certificate: optional(text),
    }),
  ),
  logDriver: optional(LogDriver),
  autoLock: optional(Type.Boolean()),
  forceRotate: optional(CountField),
});

const NodeSpec = Type.Object({
  name: text,
  labels: Labels,
  role: oneOf('worker', 'manager'),
  availability: oneOf('active', 'pause', 'drain'),
});

const SecretKind = oneOf('secret', 'config');
const version = Type.Number();
const registryAuth = optional(text);

/** The writes that clients may ask of the leader: the arguments that each takes, and its result. */
const WRITE_SCHEMAS = {
  updateCluster: {
    args: Type.Object({
      spec: ClusterSpec,
      version,
      rotateWorker: Type.Boolean(),
      rotateManager: Type.Boolean(),
      rotateUnlockKey: optional(Type.Boolean()),
      signing: optional(Type.Object({ certificate: text, key: text })),
    }),
    result: Type.Void(),
  },
  updateNode: { args: Type.Object({ ref: text, version, spec: NodeSpec }), result: Type.Void() },
  removeNode: { args: Type.Object({ ref: text, force: Type.Boolean() }), result: Type.Void() },
  createService: { args: Type.Object({ spec: ServiceSpec, registryAuth }), result: IdField },
  updateService: {
    args: Type.Object({ ref: text, version, isRollback: Type.Boolean(), spec: ServiceSpec, registryAuth }),
    result: Type.Void(),
  },
  removeService: { args: text, result: Type.Void() },
  createSecret: {
    args: Type.Object({
      kind: SecretKind,
      name: Type.String({ pattern: '^[a-zA-Z0-9._-]{1,64}$' }),
      labels: Labels,
      templating: optional(Type.Object({ name: text, options: Labels })),
      sealed: Type.String({ pattern: '^[A-Za-z0-9+/]+=*$' }),
    }),
    result: IdField,
  },
  updateSecret: { args: Type.Object({ kind: SecretKind, ref: text, version, labels: Labels }), result: Type.Void() },
  removeSecret: { args: Type.Object({ kind: SecretKind, ref: text }), result: Type.Void() },
  createNetwork: { args: NewNetwork, result: Type.Object({ id: IdField }) },
  removeNetwork: { args: Type.Object({ id: text }), result: Type.Void() },
} satisfies Readonly<Record<string, Readonly<{ args: TSchema; result: TSchema }>>>;

type WriteSchemas = typeof WRITE_SCHEMAS;
export type WriteName = keyof WriteSchemas;
export type WriteArguments<N extends WriteName> = Immutable<Static<WriteSchemas[N]['args']>>;
export type WriteResult<N extends WriteName> = Static<WriteSchemas[N]['result']>;
export type Write<N extends WriteName> = Readonly<{ write: N; args: WriteArguments<N> }>;

type Immutable<T> = T extends object ? { readonly [K in keyof T]: Immutable<T[K]> } : T;

const checks = new Map<string, Readonly<{ args: Check; result: Check }>>(
  Object.entries(WRITE_SCHEMAS).map(([write, { args, result }]) => [
    write,
    { args: lazyCheck<TSchema>(args), result: lazyCheck<TSchema>(result) },
  ]),
);
type Check = ReturnType<typeof lazyCheck>;

/** Refuses a forwarded write that has no name of this table (`notImplemented`), or arguments against its schema (`invalid`). */
export function checkWrite(request: Readonly<{ write: string; args: unknown }>): asserts request is Write<WriteName> {
  const { write, args } = request;
  const check = checks.get(write)?.args;
  if (check === undefined) throw new EngineError('notImplemented', `this manager does not know the write ${write}`);
  if (check.Check(args)) return;
  const [mistake] = check.Errors(args)[1];
  const place = mistake === undefined ? 'it' : `${mistake.instancePath} ${mistake.message}`;
  throw new EngineError('invalid', `the request ${write} of another manager is not understood: ${place}`);
}

/** Throws `failed` for an answer of the leader against the write's schema. */
export function checkResult<N extends WriteName>(write: N, result: unknown): asserts result is WriteResult<N> {
  if (checks.get(write)?.result.Check(result) === true) return;
  throw new EngineError('failed', `the leader's answer to ${write} is not understood: look whether this was done`);
}

function isConstraint(value: string): boolean {
  try {
    parseConstraint(value);
    return true;
  } catch (error) {
    if (error instanceof EngineError) return false;
    throw error;
  }
}
