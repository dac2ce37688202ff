import { Type, type TSchema } from 'typebox';

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
 * The arguments of writes as another manager forwards them: `readServiceSpec` and its like have made them there, and these
 * schemas keep their rules here.
 */
const optional = Type.Optional;
const text = Type.String();
const Labels = Type.Record(text, text);
const oneOf = <const T extends string>(...values: readonly T[]) =>
  Type.Union(values.map((value) => Type.Literal(value)));

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

const ServiceSpec = Type.Object({
  name: Type.Union([ClusterNameField, Type.Literal('')]),
  labels: Labels,
  template: TaskTemplate,
  mode: Type.Union([
    Type.Object({ kind: Type.Literal('replicated'), replicas: Type.Integer({ minimum: 0, maximum: MAX_REPLICAS }) }),
    Type.Object({ kind: Type.Literal('global') }),
  ]),
  update: optional(UpdateConfig),
  rollback: optional(UpdateConfig),
  networks: Type.Array(Type.Object({ target: IdField, aliases: Type.Array(text) })),
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
    }),
  ),
  logDriver: optional(LogDriver),
});

const NodeSpec = Type.Object({
  name: text,
  labels: Labels,
  role: oneOf('worker', 'manager'),
  availability: oneOf('active', 'pause', 'drain'),
});

const version = Type.Number();
const registryAuth = optional(text);

const ARGUMENTS: Readonly<Record<string, TSchema>> = {
  updateCluster: Type.Object({
    spec: ClusterSpec,
    version,
    rotateWorker: Type.Boolean(),
    rotateManager: Type.Boolean(),
  }),
  updateNode: Type.Object({ ref: text, version, spec: NodeSpec }),
  removeNode: Type.Object({ ref: text, force: Type.Boolean() }),
  createService: Type.Object({ spec: ServiceSpec, registryAuth }),
  updateService: Type.Object({ ref: text, version, isRollback: Type.Boolean(), spec: ServiceSpec, registryAuth }),
  removeService: text,
  createNetwork: NewNetwork,
  removeNetwork: Type.Object({ id: text }),
};

/** Results of writes that return anything. */
const RESULTS: Readonly<Record<string, TSchema>> = {
  createService: IdField,
  createNetwork: Type.Object({ id: IdField }),
};

const argumentChecks = checksOf(ARGUMENTS);
const resultChecks = checksOf(RESULTS);

function checksOf(schemas: Readonly<Record<string, TSchema>>): ReadonlyMap<string, ReturnType<typeof lazyCheck>> {
  return new Map(Object.entries(schemas).map(([write, schema]) => [write, lazyCheck(schema)]));
}

/** Throws `invalid` for arguments of a forwarded write that are against its rules; the write itself refuses unknown names. */
export function checkArguments(write: string, args: unknown): void {
  const check = argumentChecks.get(write);
  if (check === undefined || check.Check(args)) return;
  const [mistake] = check.Errors(args)[1];
  const place = mistake === undefined ? 'it' : `${mistake.instancePath} ${mistake.message}`;
  throw new EngineError('invalid', `the request ${write} of another manager is not understood: ${place}`);
}

/** Throws `failed` for a result of the leader that a write does not have. */
export function checkResult(write: string, result: unknown): void {
  const check = resultChecks.get(write);
  if (check === undefined || check.Check(result)) return;
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
