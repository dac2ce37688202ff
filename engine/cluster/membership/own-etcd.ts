import { join } from 'node:path';

import { type EtcdSettings, HISTORY, QUOTA_BYTES } from '../etcd/flags.ts';
import { EtcdProcess, findEtcd } from '../etcd/process.ts';
import type { ClusterSpec } from '../state/records.ts';
import { addressText, readAddress } from './addresses.ts';
import type { Identity } from './identity.ts';
import type { ManagerNeeds } from './manager.ts';

/** Ends the etcd that was left by a daemon which was killed while it became a member. */
export async function endLeftEtcd(
  needs: Pick<ManagerNeeds, 'background' | 'clock' | 'config' | 'folder' | 'log'>,
): Promise<void> {
  const raft = {
    snapshotInterval: 0,
    keepOldSnapshots: 0,
    logEntriesForSlowFollowers: 0,
    heartbeatTick: 0,
    electionTick: 0,
  };
  const settings = { name: '', place: placeOf(needs, ''), listen: '', advertise: '', raft, quotaBytes: 0, history: '' };
  await new EtcdProcess(needs, settings).stop();
}

/** Throws when etcd is not installed. */
export function etcdSettings(
  needs: Pick<ManagerNeeds, 'config' | 'folder'>,
  { nodeId, listen, advertise }: Pick<Identity, 'nodeId' | 'listen' | 'advertise'>,
  raft: ClusterSpec['raft'],
): EtcdSettings {
  const place = placeOf(needs, findEtcd());
  return {
    name: nodeId,
    place,
    listen: nextPort(listen),
    advertise: nextPort(advertise),
    raft,
    quotaBytes: QUOTA_BYTES,
    history: HISTORY,
  };
}

/** etcd's peers are reached on the next port. */
function nextPort(text: string): string {
  const { ip, port } = readAddress(text);
  return addressText({ ip, port: port + 1 });
}

function placeOf({ config, folder }: Pick<ManagerNeeds, 'config' | 'folder'>, program: string): EtcdSettings['place'] {
  const run = join(config.execRoot, 'etcd');
  return { program, data: join(folder.path, 'etcd'), peers: join(folder.path, 'peers'), run };
}
