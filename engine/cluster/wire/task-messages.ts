import { Type, type Static } from 'typebox';

import {
  Cidr4Field,
  ClusterNameField,
  CountField,
  IdField,
  IntegerField,
  limitedText,
  MAX_RECORD_BYTES,
  MomentField,
  PortField,
} from '../../lib/notations/field-schemas.ts';
import { TASK_STATES, type TaskState } from '../state/records.ts';
import { NODE_NETWORKS, type TaskTemplate } from '../state/task-template.ts';

const Labels = Type.Record(Type.String(), Type.String());
const texts = Type.Array(Type.String());
const optional = Type.Optional;

const Amounts = Type.Object({ nanoCpus: optional(CountField), memoryBytes: optional(CountField) });
const LogDriver = Type.Object({ name: Type.String(), options: Labels });
const oneOf = <const T extends string>(...values: readonly T[]) =>
  Type.Unsafe<T>(Type.Union(values.map((value) => Type.Literal(value))));
const Mount = Type.Object({
  type: oneOf('bind', 'volume', 'tmpfs', 'image'),
  source: optional(Type.String()),
  target: optional(Type.String()),
  readOnly: optional(Type.Boolean()),
  propagation: optional(Type.String()),
  nonRecursive: optional(Type.Boolean()),
  createMountpoint: optional(Type.Boolean()),
  readOnlyNonRecursive: optional(Type.Boolean()),
  readOnlyForceRecursive: optional(Type.Boolean()),
  tmpfs: optional(
    Type.Object({
      sizeBytes: optional(IntegerField),
      mode: optional(CountField),
      options: optional(Type.Array(Type.Array(Type.String()))),
    }),
  ),
  image: optional(Type.Object({ subpath: optional(Type.String()) })),
  volume: optional(
    Type.Object({
      noCopy: optional(Type.Boolean()),
      subpath: optional(Type.String()),
      labels: optional(Labels),
      driver: optional(Type.Object({ name: optional(Type.String()), options: optional(Labels) })),
    }),
  ),
});

const SecretReference = Type.Object({
  id: IdField,
  name: limitedText(),
  file: Type.Object({ name: limitedText(), uid: limitedText(), gid: limitedText(), mode: CountField }),
});

const Port = Type.Object({
  protocol: Type.Union([Type.Literal('tcp'), Type.Literal('udp')]),
  targetPort: PortField,
  publishedPort: PortField,
});

const Healthcheck = Type.Object({
  test: optional(texts),
  intervalNs: optional(IntegerField),
  timeoutNs: optional(IntegerField),
  startPeriodNs: optional(IntegerField),
  startIntervalNs: optional(IntegerField),
  retries: optional(CountField),
});

const text = optional(Type.String());
const Privileges = Type.Object({
  seLinux: optional(
    Type.Object({ disable: optional(Type.Boolean()), user: text, role: text, type: text, level: text }),
  ),
  seccomp: optional(Type.Object({ mode: oneOf('default', 'unconfined', 'custom'), profile: text })),
  appArmor: optional(oneOf('default', 'disabled')),
  noNewPrivileges: optional(Type.Boolean()),
});

/** Settings of a container beside its image and command; all are optional. */
const CONTAINER_SETTINGS = {
  hostname: text,
  groups: optional(texts),
  stopSignal: text,
  tty: optional(Type.Boolean()),
  openStdin: optional(Type.Boolean()),
  readOnly: optional(Type.Boolean()),
  init: optional(Type.Boolean()),
  sysctls: optional(Labels),
  hosts: optional(texts),
  dns: optional(Type.Object({ nameservers: optional(texts), search: optional(texts), options: optional(texts) })),
  healthcheck: optional(Healthcheck),
  capAdd: optional(texts),
  capDrop: optional(texts),
  ulimits: optional(Type.Array(Type.Object({ name: Type.String(), soft: IntegerField, hard: IntegerField }))),
  privileges: optional(Privileges),
  oomScoreAdj: optional(IntegerField),
  isolation: optional(oneOf('process', 'hyperv')),
  nodeNetwork: optional(oneOf(...NODE_NETWORKS)),
};

export const GenericResource = Type.Union([
  Type.Object({ kind: Type.String(), amount: CountField }),
  Type.Object({ kind: Type.String(), name: Type.String() }),
]);

/** Fields that the tasks of one template share; their place and restarts are the leader's business. */
export const NodeTemplate = Type.Object({
  container: Type.Unsafe<TaskTemplate['container']>(
    Type.Object({
      image: Type.String(),
      command: optional(texts),
      args: optional(texts),
      env: optional(texts),
      dir: optional(Type.String()),
      user: optional(Type.String()),
      labels: optional(Labels),
      stopGracePeriodNs: optional(IntegerField),
      mounts: optional(Type.Array(Mount)),
      secrets: optional(Type.Array(SecretReference)),
      configs: optional(Type.Array(SecretReference)),
      ...CONTAINER_SETTINGS,
    }),
  ),
  resources: optional(
    Type.Unsafe<NonNullable<TaskTemplate['resources']>>(
      Type.Object({
        limits: optional(Type.Object({ ...Amounts.properties, pids: optional(IntegerField) })),
        reservations: optional(Type.Object({ ...Amounts.properties, generic: optional(Type.Array(GenericResource)) })),
        swapBytes: optional(IntegerField),
        memorySwappiness: optional(IntegerField),
      }),
    ),
  ),
  /** The service's, else the cluster's; without either the daemon's. */
  logDriver: optional(LogDriver),
  networks: Type.Array(
    Type.Object({ target: IdField, aliases: Type.Immutable(texts), driverOpts: optional(Type.Immutable(Labels)) }),
  ),
  /** Where the container has templates, which may name them. */
  serviceLabels: optional(Type.Immutable(Labels)),
  /** Ports that the container publishes on the node; 0: any port. */
  ports: optional(Type.Immutable(Type.Array(Port))),
});
export type NodeTemplate = Readonly<Static<typeof NodeTemplate>>;

const State = Type.Unsafe<TaskState>(Type.Union(TASK_STATES.map((state) => Type.Literal(state))));

/** A task as its node sees it. */
export const Assignment = Type.Object({
  id: IdField,
  service: IdField,
  /** Empty where the service is gone. */
  serviceName: Type.Union([ClusterNameField, Type.Literal('')]),
  /** 0 of a global service's task. */
  slot: CountField,
  desired: Type.Union([
    Type.Literal('ready'),
    Type.Literal('running'),
    Type.Literal('shutdown'),
    Type.Literal('remove'),
  ]),
  /** The key of its template in a message of the same session. */
  template: limitedText(),
  addresses: Type.Array(Type.Object({ network: IdField, address: Cidr4Field })),
  /** Resources of the node that the task has; earlier versions ignore them, and have none. */
  generic: optional(Type.Immutable(Type.Array(GenericResource))),
});
export type Assignment = Readonly<Static<typeof Assignment>>;

/** Published ports of a task: more than a specification has room for. */
const MAX_PORTS = 10_000;

/** The leader shortens long texts of a status. */
export const TaskStatus = Type.Object({
  state: State,
  timestamp: MomentField,
  message: Type.String(),
  error: optional(Type.String()),
  startedAt: optional(MomentField),
  container: optional(Type.Object({ id: limitedText(), pid: CountField, exitCode: IntegerField })),
  ports: optional(Type.Immutable(Type.Array(Port, { maxItems: MAX_PORTS }))),
});
export type TaskStatus = Readonly<Static<typeof TaskStatus>>;

/** New and changed tasks of the node; the first of a session are all that it has, and `allTasks` ends them. */
export const TasksMessage = Type.Object({
  say: Type.Literal('tasks'),
  /** A node checks each by `NodeTemplate`: of a later version it may not know one, and refuses its tasks alone. */
  templates: Type.Record(Type.String(), Type.Unsafe<NodeTemplate>(Type.Unknown())),
  tasks: Type.Array(
    Type.Object({
      assignment: Assignment,
      /** As the leader knows it. */
      state: State,
      /** The header X-Registry-Auth, for the pull of the image. */
      auth: optional(limitedText(MAX_RECORD_BYTES)),
    }),
  ),
  /** Ids of tasks whose records are gone: nothing of them is to stay. */
  gone: Type.Array(IdField),
});
export type TasksMessage = Readonly<Static<typeof TasksMessage>>;
export const AllTasksMessage = Type.Object({ say: Type.Literal('allTasks') });

const Kind = Type.Union([Type.Literal('secret'), Type.Literal('config')]);

/** Asks for the data of a secret or config that a task of the node has. */
export const WantFileMessage = Type.Object({ say: Type.Literal('wantFile'), task: IdField, kind: Kind, id: IdField });
export type WantFileMessage = Readonly<Static<typeof WantFileMessage>>;

/** The largest config in base64. */
const MAX_FILE_LETTERS = 1_400_000;

/** The data, or the reason why the node does not get it. */
export const FileMessage = Type.Object({
  say: Type.Literal('file'),
  task: IdField,
  kind: Kind,
  id: IdField,
  /** Base64. */
  data: optional(limitedText(MAX_FILE_LETTERS)),
  /** The data is a template; its name is the language. */
  templating: optional(Type.Object({ name: Type.String(), serviceLabels: Labels })),
  refusal: optional(limitedText()),
});
export type FileMessage = Readonly<Static<typeof FileMessage>>;

/** States of tasks; `ack` with its number follows when they are stored. */
export const ReportMessage = Type.Object({
  say: Type.Literal('report'),
  number: CountField,
  tasks: Type.Array(Type.Object({ id: IdField, status: TaskStatus })),
});
export type ReportMessage = Readonly<Static<typeof ReportMessage>>;
export const AckMessage = Type.Object({ say: Type.Literal('ack'), number: CountField });
