import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';

import * as cluster from '@gantry/client/cluster.ts';
import { info } from '@gantry/client/system.ts';

import { command, type Context, type Given } from '../command-line/command.ts';
import { EXIT, Exit, UsageError } from '../exit-codes.ts';
import { ask } from '../output/ask.ts';

const DEFAULT_LISTEN = '0.0.0.0:2377';
const ADDRESSES = {
  'advertise-addr': {
    kind: 'text',
    value: 'ADDRESS',
    help: 'Where others reach this node: an address or an interface',
  },
  'data-path-addr': {
    kind: 'text',
    value: 'ADDRESS',
    help: 'Where others reach its tasks, if elsewhere: an address or an interface',
  },
  'listen-addr': { kind: 'text', value: 'ADDRESS', initial: DEFAULT_LISTEN, help: 'Where it listens' },
} as const;
const SPEC = {
  'cert-expiry': { kind: 'duration', help: 'How long certificates of nodes count' },
  'dispatcher-heartbeat': { kind: 'duration', help: 'How often nodes are heard' },
  'max-snapshots': { kind: 'integer', help: 'Further snapshots that etcd keeps' },
  'snapshot-interval': { kind: 'integer', help: 'Writes between snapshots of etcd' },
  'task-history-limit': { kind: 'integer', help: 'Ended tasks that are kept of each slot' },
} as const;

export const initSwarm = command({
  words: '',
  count: [0, 0],
  flags: {
    ...ADDRESSES,
    ...SPEC,
    autolock: { kind: 'boolean', help: 'Managers need a key after a restart' },
    'data-path-port': { kind: 'integer', help: 'UDP port of the traffic between tasks, on all nodes: 1024 to 49151' },
    'force-new-cluster': { kind: 'boolean', help: 'Go on alone with the records of this manager' },
  },
  examples: ['gantry swarm init --advertise-addr 10.0.0.1'],
  run: async (context, _words, flags) => {
    const node = await cluster.initSwarm(context.connection, {
      ListenAddr: flags['listen-addr'],
      AdvertiseAddr: flags['advertise-addr'] ?? '',
      DataPathAddr: flags['data-path-addr'] ?? '',
      DataPathPort: flags['data-path-port'] ?? 0,
      ForceNewCluster: flags['force-new-cluster'],
      Spec: applySwarmFlags({}, { ...flags, autolock: flags.autolock ? 'true' : undefined }),
    });
    console.log(`Swarm initialized: current node (${node}) is now a manager.\n`);
    await printJoin(context, 'worker');
    console.log("\nTo add a manager to this swarm, run 'gantry swarm join-token manager' and follow the instructions.");
    if (flags.autolock) await printUnlock(context);
  },
});

export const joinSwarm = command({
  words: 'HOST:PORT',
  count: [1, 1],
  flags: { ...ADDRESSES, token: { kind: 'text', value: 'TOKEN', help: 'The token for its role' } },
  examples: ['gantry swarm join --token SWMTKN-1-… 10.0.0.1:2377'],
  run: async ({ connection }, [remote = ''], flags) => {
    await cluster.joinSwarm(connection, {
      ListenAddr: flags['listen-addr'],
      AdvertiseAddr: flags['advertise-addr'] ?? '',
      DataPathAddr: flags['data-path-addr'] ?? '',
      RemoteAddrs: [remote],
      JoinToken: flags.token ?? '',
    });
    const { Swarm } = await info(connection);
    console.log(`This node joined a swarm as a ${Swarm.ControlAvailable ? 'manager' : 'worker'}.`);
  },
});

export const joinToken = command({
  words: 'worker|manager',
  count: [1, 1],
  flags: {
    quiet: { kind: 'boolean', short: 'q', help: 'Only the token' },
    rotate: { kind: 'boolean', help: 'A new one; the old one is void' },
  },
  offers: ['worker', 'manager'],
  run: async (context, [role = ''], { quiet, rotate }) => {
    if (role !== 'worker' && role !== 'manager') throw new UsageError(`unknown role ${role}`);
    const { connection } = context;
    if (rotate) {
      const rotated = role === 'worker' ? { rotateWorkerToken: true } : { rotateManagerToken: true };
      await cluster.updateSwarm(connection, await cluster.inspectSwarm(connection), rotated);
      if (!quiet) console.log(`Successfully rotated ${role} join token.\n`);
    }
    if (quiet) console.log(tokenOf(await cluster.inspectSwarm(connection), role));
    else await printJoin(context, role);
  },
});

export const leaveSwarm = command({
  words: '',
  count: [0, 0],
  flags: { force: { kind: 'boolean', short: 'f', help: 'Also as a manager' } },
  run: async ({ connection }, _words, { force }) => {
    await cluster.leaveSwarm(connection, force);
    console.log('Node left the swarm.');
  },
});

export const updateSwarm = command({
  words: '',
  count: [0, 0],
  flags: {
    ...SPEC,
    autolock: { kind: 'text', value: 'true|false', help: 'Whether managers need a key after a restart' },
  },
  run: async (context, _words, flags) => {
    const { connection } = context;
    if (!['true', 'false', undefined].includes(flags.autolock)) throw new UsageError('--autolock is true or false');
    const { Version, Spec } = await cluster.inspectSwarm(connection);
    await cluster.updateSwarm(connection, { Version, Spec: applySwarmFlags(Spec, flags) as cluster.SwarmSpec });
    console.log('Swarm updated.');
    if (flags.autolock === 'true') await printUnlock(context);
  },
});

export const showAuthority = command({
  words: '',
  count: [0, 0],
  flags: {
    rotate: { kind: 'boolean', help: 'Replace it: by a new one, or by --ca-cert' },
    'ca-cert': { kind: 'text', value: 'FILE', help: 'The root that replaces it' },
    'ca-key': { kind: 'text', value: 'FILE', help: 'Its key' },
    'cert-expiry': SPEC['cert-expiry'],
  },
  about: 'A rotation goes on until all nodes have a certificate of the new root; then join tokens are new too.',
  run: async ({ connection }, _words, flags) => {
    const swarm = await cluster.inspectSwarm(connection);
    if (!flags.rotate) return console.log(swarm.TLSInfo.TrustRoot.trimEnd());
    const { CAConfig } = swarm.Spec;
    const [root, key] = [flags['ca-cert'], flags['ca-key']];
    const next = {
      ...CAConfig,
      ForceRotate: (CAConfig.ForceRotate ?? 0) + 1,
      ...omitUndefined({ NodeCertExpiry: flags['cert-expiry'] }),
      ...(root === undefined ? {} : { SigningCACert: await readFile(root, 'utf8') }),
      ...(key === undefined ? {} : { SigningCAKey: await readFile(key, 'utf8') }),
    };
    await cluster.updateSwarm(connection, { Version: swarm.Version, Spec: { ...swarm.Spec, CAConfig: next } });
    console.log('The root is being rotated; "gantry node ls" lists nodes that are down, which it waits for.');
  },
});

export const unlockSwarm = command({
  words: '',
  count: [0, 0],
  flags: {},
  about: 'The key is read from the terminal, or from stdin.',
  run: async ({ connection }) => {
    const key = process.stdin.isTTY ? await ask('Please enter unlock key: ', true) : await text(process.stdin);
    await cluster.unlockSwarm(connection, key.trim());
  },
});

export const showUnlockKey = command({
  words: '',
  count: [0, 0],
  flags: {
    quiet: { kind: 'boolean', short: 'q', help: 'Only the key' },
    rotate: { kind: 'boolean', help: 'A new one; managers that took it refuse the old one' },
  },
  run: async (context, _words, { quiet, rotate }) => {
    const { connection } = context;
    if (rotate) {
      const swarm = await cluster.inspectSwarm(connection);
      if (swarm.Spec.EncryptionConfig?.AutoLockManagers !== true) {
        throw new Exit(EXIT.failed, 'cannot rotate because autolock is not turned on');
      }
      await cluster.updateSwarm(connection, swarm, { rotateManagerUnlockKey: true });
      if (!quiet) console.log('Successfully rotated manager unlock key.');
    }
    if (!quiet) return await printUnlock(context);
    console.log(await knownUnlockKey(context));
  },
});

/** A specification with what the flags say of it. */
function applySwarmFlags(
  spec: Partial<cluster.SwarmSpec>,
  flags: Given<typeof SPEC> & { autolock?: string | undefined },
): Partial<cluster.SwarmSpec> {
  return {
    ...spec,
    Orchestration: {
      ...spec.Orchestration!,
      ...omitUndefined({ TaskHistoryRetentionLimit: flags['task-history-limit'] }),
    },
    Raft: {
      ...spec.Raft,
      ...omitUndefined({ SnapshotInterval: flags['snapshot-interval'], KeepOldSnapshots: flags['max-snapshots'] }),
    },
    Dispatcher: { ...spec.Dispatcher!, ...omitUndefined({ HeartbeatPeriod: flags['dispatcher-heartbeat'] }) },
    CAConfig: { ...spec.CAConfig!, ...omitUndefined({ NodeCertExpiry: flags['cert-expiry'] }) },
    ...(flags.autolock === undefined ? {} : { EncryptionConfig: { AutoLockManagers: flags.autolock === 'true' } }),
  };
}

function omitUndefined(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

async function printJoin({ connection }: Context, role: 'worker' | 'manager'): Promise<void> {
  const { NodeID } = (await info(connection)).Swarm;
  const [swarm, node] = await Promise.all([cluster.inspectSwarm(connection), cluster.inspectNode(connection, NodeID)]);
  console.log(`To add a ${role} to this swarm, run the following command:\n`);
  console.log(`    gantry swarm join --token ${tokenOf(swarm, role)} ${node.ManagerStatus?.Addr ?? ''}`);
}

async function printUnlock(context: Context): Promise<void> {
  const key = await knownUnlockKey(context);
  console.log(`
To unlock a swarm manager after it restarts, run "gantry swarm unlock" and provide the following key:

    ${key}

Remember to store this key in a password manager: without it you will not be able to restart the manager.`);
}

async function knownUnlockKey({ connection }: Context): Promise<string> {
  const key = await cluster.unlockKey(connection);
  if (key === '') throw new Exit(EXIT.failed, 'no unlock key is set');
  return key;
}

function tokenOf({ JoinTokens }: cluster.SwarmWire, role: 'worker' | 'manager'): string {
  return role === 'worker' ? JoinTokens.Worker : JoinTokens.Manager;
}
