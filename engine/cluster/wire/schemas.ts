import { Type, type Static } from 'typebox';

import { lazyCheck } from '../../lib/lazy-check.ts';
import {
  CountField,
  HostField,
  HostPortField,
  isWithin,
  limitedText,
  MAX_INT64,
  MAX_RECORD_BYTES,
  PortField,
} from '../../lib/notations/field-schemas.ts';
import { MAX_ATTACHMENTS, Unattached, WantedAttachment } from '../../networks/overlay/members/attachment.ts';
import { NetworkNewsMessage } from '../../networks/overlay/members/members.ts';
import { LogsMessage } from './log-messages.ts';
import {
  AckMessage,
  AllTasksMessage,
  FileMessage,
  GenericResource,
  ReportMessage,
  TasksMessage,
  WantFileMessage,
} from './task-messages.ts';

const text = limitedText();
const id = Type.String({ pattern: '^[0-9a-z]{25}$' });
const hostPort = lazyCheck(HostPortField);
const closed = { additionalProperties: false };
const MAX_ROOTS_BYTES = 16 * 1024;
const Labels = Type.Record(Type.String(), Type.String());
const PeerUrl = Type.Refine(
  Type.String(),
  (url) => url.startsWith('https://') && hostPort.Check(url.slice('https://'.length)),
  () => 'must be https://, an IP address and a port',
);
const Role = Type.Union([Type.Literal('worker'), Type.Literal('manager')]);

/** `GET /v1/ca`: PEM. */
export const RootAnswer = Type.Object({ certificate: text });

/**
 * With a token of a new node; without one of a node that has a certificate. PEM: the key, and a request (PKCS #10) with it for
 * an external authority.
 */
export const CertificateRequest = Type.Object({ publicKey: text, csr: text, token: Type.Optional(text) }, closed);
export type CertificateRequest = Readonly<Static<typeof CertificateRequest>>;
export const CertificateAnswer = Type.Object({
  nodeId: id,
  clusterId: id,
  role: Role,
  certificate: text,
  /** Digest of the key that has signed it; missing in those of earlier versions. */
  issuer: Type.Optional(text),
});
export type CertificateAnswer = Static<typeof CertificateAnswer>;

/** Request of a manager whose etcd wants to be a member. `address`: of its API, `url`: of its peers. */
export const PeerRequest = Type.Object({ address: HostPortField, url: PeerUrl, publicKey: text }, closed);
export const PeerAnswer = Type.Object({
  members: Type.Array(Type.Object({ name: Type.Union([id, Type.Literal('')]), peerUrl: PeerUrl })),
  certificate: text,
  ca: text,
  /** DER in base64. */
  crl: Type.String(),
  raft: Type.Object({
    snapshotInterval: CountField,
    keepOldSnapshots: CountField,
    logEntriesForSlowFollowers: CountField,
    heartbeatTick: CountField,
    electionTick: CountField,
  }),
  /** Where managers are locked: the key that unlocks them, and that of secrets and configs in base64. */
  unlockKey: Type.Optional(text),
  dataKey: Type.Optional(text),
});
export type PeerAnswer = Static<typeof PeerAnswer>;

export const Nothing = Type.Object({}, closed);

/** A write of the API that came to a manager that does not lead; `checkWrite` has the schema of each write's `args`. */
export const WriteRequest = Type.Object({ write: text, args: Type.Unknown() }, closed);
export const WriteAnswer = Type.Object({ result: Type.Optional(Type.Unknown()), revision: CountField });

/** A manager's etcd goes out of service for a while, or is back. */
export const OutageRequest = Type.Object({ step: Type.Union([Type.Literal('begin'), Type.Literal('end')]) }, closed);
export const OutageAnswer = Type.Object({ granted: Type.Boolean() });

/** An answer of 400 and above; `leader` with 421. */
export const Refusal = Type.Object({
  kind: Type.Optional(Type.String()),
  message: Type.Optional(Type.String()),
  leader: Type.Optional(Type.Union([HostPortField, Type.Null()])),
});
export type Refusal = Static<typeof Refusal>;

/** Whether it knows the messages `wantFile` and `file`: a node that does not gets no task with secrets or configs. */
const Files = Type.Optional(Type.Literal(true));

/** Whether it knows the messages from `withdrawing` to `withdrawn`: others end the session of who sends them. */
const Syncs = Type.Optional(Type.Literal(true));

const Managers = Type.Array(Type.Object({ id, address: HostPortField }));

const Description = Type.Refine(
  Type.Object({
    hostname: text,
    platform: Type.Object({ architecture: text, os: text }),
    resources: Type.Object({
      ...{ nanoCpus: CountField, memoryBytes: CountField },
      generic: Type.Optional(Type.Array(GenericResource)),
    }),
    engine: Type.Object({
      version: text,
      labels: Labels,
      plugins: Type.Array(Type.Object({ type: text, name: text })),
    }),
    features: Type.Optional(Type.Array(text)),
  }),
  (description) => isWithin(MAX_RECORD_BYTES, description),
  () => 'must have at most 512 KB',
);

const PeriodMs = Type.Number({ exclusiveMinimum: 0, maximum: MAX_INT64 });

const Digest = Type.String({ pattern: '^[0-9a-f]{64}$' });

/** Digests of the first root that a node trusts, and of the key that has signed its certificate. */
const Tls = Type.Object({ root: Digest, issuer: Digest });

/** Messages of a node in its session. */
export const FromNode = Type.Union([
  Type.Object({
    say: Type.Literal('hello'),
    description: Description,
    address: HostField,
    /** Missing: `address`. */
    dataPath: Type.Optional(HostField),
    tls: Type.Optional(Tls),
    syncs: Syncs,
    files: Files,
    /** Whether it sends the logs of its tasks: `logs` ends the session of earlier versions. */
    logs: Type.Optional(Type.Literal(true)),
  }),
  Type.Object({ say: Type.Literal('beat') }),
  Type.Object({ say: Type.Literal('tls'), tls: Tls }),
  ReportMessage,
  WantFileMessage,
  Type.Object({
    say: Type.Literal('attachments'),
    wanted: Type.Array(WantedAttachment, { maxItems: MAX_ATTACHMENTS }),
  }),
  /** Tasks of the node serve no more in this network: have the others heard it? */
  Type.Object({ say: Type.Literal('withdrawing'), number: CountField, network: id }),
  Type.Object({ say: Type.Literal('synced'), number: CountField }),
]);
export type FromNode = Static<typeof FromNode>;

/**
 * Messages of the leader in it: `role` is the one that the node should ask a certificate for; `hasEtcd` whether the node's etcd
 * is a member, or learns (earlier versions do not say).
 */
export const FromLeader = Type.Union([
  Type.Object({
    say: Type.Literal('welcome'),
    periodMs: PeriodMs,
    managers: Managers,
    role: Role,
    syncs: Syncs,
    files: Files,
    hasEtcd: Type.Optional(Type.Boolean()),
    /** Missing: VXLAN's. */
    tunnelPort: Type.Optional(PortField),
  }),
  Type.Object({ say: Type.Literal('managers'), managers: Managers }),
  Type.Object({ say: Type.Literal('period'), periodMs: PeriodMs }),
  Type.Object({ say: Type.Literal('role'), role: Role }),
  Type.Object({ say: Type.Literal('renew') }),
  /** The roots (PEM) to trust, and the digest of the key that its certificate should be signed by; for nodes that say their `tls`. */
  Type.Object({ say: Type.Literal('trust'), root: limitedText(MAX_ROOTS_BYTES), issuer: Digest }),
  Type.Object({ say: Type.Literal('beat') }),
  TasksMessage,
  AllTasksMessage,
  AckMessage,
  FileMessage,
  Type.Object({ say: Type.Literal('networks'), ids: Type.Array(id) }),
  Type.Object({ say: Type.Literal('network'), news: NetworkNewsMessage }),
  /** Answered by `synced` once all that came before is in force. */
  Type.Object({ say: Type.Literal('sync'), number: CountField }),
  Type.Object({ say: Type.Literal('withdrawn'), number: CountField }),
  Type.Object({ say: Type.Literal('unattached'), ...Unattached.properties }),
  LogsMessage,
]);
export type FromLeader = Static<typeof FromLeader>;
