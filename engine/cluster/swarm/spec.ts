import { refuseIf } from '../../lib/errors.ts';
import { isWithin, MAX_RECORD_BYTES } from '../../lib/notations/field-schemas.ts';
import { normalizeCertificate, type WantedRoot } from '../ca/rotation.ts';
import type { ClusterSpec } from '../state/records.ts';
import type { SpecBody } from './schema.ts';

const HOUR_NS = 3600 * 1e9;
const NAME = 'default';
const DEFAULTS = {
  taskHistoryRetentionLimit: 5,
  raft: {
    snapshotInterval: 10_000,
    keepOldSnapshots: 0,
    logEntriesForSlowFollowers: 500,
    heartbeatTick: 1,
    electionTick: 10,
  },
  heartbeatPeriodNs: 5e9,
  nodeCertExpiryNs: 90 * 24 * HOUR_NS,
} as const;

/** A client's specification of a cluster, checked; missing fields have the default. */
export function readSpec(body: SpecBody): ClusterSpec {
  refuseIf(!isWithin(MAX_RECORD_BYTES, body), 'the specification of a cluster is 512 KB at most');
  refuseIf((body.Name || NAME) !== NAME, 'swarm spec must be named "default"');
  const heartbeatPeriodNs = body.Dispatcher?.HeartbeatPeriod || DEFAULTS.heartbeatPeriodNs;
  refuseIf(
    heartbeatPeriodNs < 0,
    'rpc error: code = InvalidArgument desc = heartbeat time period cannot be a negative duration',
  );
  const nodeCertExpiryNs = body.CAConfig?.NodeCertExpiry || DEFAULTS.nodeCertExpiryNs;
  refuseIf(
    nodeCertExpiryNs < HOUR_NS,
    'rpc error: code = InvalidArgument desc = minimum certificate expiry time is: 1h0m0s',
  );
  const forceRotate = body.CAConfig?.ForceRotate ?? 0;
  const driver = body.TaskDefaults?.LogDriver;
  return {
    name: NAME,
    labels: body.Labels ?? {},
    taskHistoryRetentionLimit: body.Orchestration?.TaskHistoryRetentionLimit ?? DEFAULTS.taskHistoryRetentionLimit,
    raft: readRaft(body.Raft ?? {}),
    heartbeatPeriodNs,
    nodeCertExpiryNs,
    externalCas: readExternal(body.CAConfig?.ExternalCAs ?? []),
    ...(forceRotate > 0 && { forceRotate }),
    ...(body.EncryptionConfig?.AutoLockManagers === true && { autoLock: true }),
    ...(driver?.Name ? { logDriver: { name: driver.Name, options: driver.Options ?? {} } } : {}),
  };
}

/** The root that a client wants the cluster to have, with its key (PEM); it is never shown. */
export function readSigning({ CAConfig }: SpecBody): WantedRoot {
  return { certificate: CAConfig?.SigningCACert ?? '', key: CAConfig?.SigningCAKey ?? '' };
}

function readRaft(given: NonNullable<SpecBody['Raft']>): ClusterSpec['raft'] {
  const defaults = DEFAULTS.raft;
  return {
    snapshotInterval: given.SnapshotInterval || defaults.snapshotInterval,
    keepOldSnapshots: given.KeepOldSnapshots ?? defaults.keepOldSnapshots,
    logEntriesForSlowFollowers: given.LogEntriesForSlowFollowers || defaults.logEntriesForSlowFollowers,
    heartbeatTick: given.HeartbeatTick || defaults.heartbeatTick,
    electionTick: given.ElectionTick || defaults.electionTick,
  };
}

type External = NonNullable<NonNullable<SpecBody['CAConfig']>['ExternalCAs']>;

function readExternal(given: External): ClusterSpec['externalCas'] {
  return given.map(({ Protocol = '', URL: url = '', Options, CACert }) => {
    const certificate = normalizeCertificate(CACert ?? '');
    refuseIf(Protocol !== '' && Protocol.toLowerCase() !== 'cfssl', `invalid protocol: "${Protocol}"`);
    refuseIf(
      !/^https?:\/\//.test(url) || !URL.canParse(url),
      `rpc error: code = InvalidArgument desc = invalid URL of an external CA: "${url}"`,
    );
    return { protocol: 'cfssl', url, options: Options ?? {}, ...(certificate !== '' && { certificate }) };
  });
}
