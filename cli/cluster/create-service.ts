import * as cluster from '@gantry/client/cluster.ts';

import { command, MANY } from '../command-line/command.ts';
import { mapOf } from '../command-line/values.ts';
import { setMounts } from '../create/storage-values.ts';
import { EXIT, Exit, UsageError } from '../exit-codes.ts';
import { authHeader } from '../registry/docker-config.ts';
import { configReferences, secretReferences } from './secret-flags.ts';
import { applySettings, publishedPorts, SETTINGS } from './service-flags.ts';

const MODES = new Map<string, NonNullable<cluster.ServiceSpec['Mode']>>([
  ['replicated', { Replicated: { Replicas: 1 } }],
  ['global', { Global: {} }],
  ['replicated-job', { ReplicatedJob: {} }],
  ['global-job', { GlobalJob: {} }],
]);

export const createService = command({
  words: 'IMAGE [COMMAND] [ARG...]',
  count: [1, MANY],
  passesOn: true,
  flags: {
    ...SETTINGS,
    constraint: { kind: 'list', value: 'EXPRESSION', help: 'Which nodes, such as node.labels.disk==fast' },
    'container-label': { kind: 'list', value: 'NAME=VALUE', help: 'A label of its containers' },
    detach: { kind: 'boolean', short: 'd', help: 'As it is always: nothing is waited for' },
    env: { kind: 'list', short: 'e', value: 'NAME=VALUE', help: 'A variable' },
    label: { kind: 'list', short: 'l', value: 'NAME=VALUE', help: 'A label of the service' },
    mode: { kind: 'text', initial: 'replicated', help: 'replicated, global, or a job', offers: [...MODES.keys()] },
    mount: { kind: 'list', value: 'MOUNT', help: 'type=volume,source=data,target=/data' },
    name: { kind: 'text', help: 'Its name' },
    network: { kind: 'list', value: 'NETWORK', help: 'An overlay network', offers: 'network' },
    publish: { kind: 'list', short: 'p', value: '[PORT:]INSIDE', help: 'A port on all nodes' },
    secret: {
      kind: 'list',
      value: 'SECRET',
      help: 'NAME, or source=NAME,target=PATH,uid=0,mode=0400',
      offers: 'secret',
    },
    config: { kind: 'list', value: 'CONFIG', help: 'NAME, or source=NAME,target=PATH', offers: 'config' },
  },
  offers: 'image',
  examples: ['gantry service create --name web --replicas 3 --publish 8080:80 nginx'],
  run: async ({ connection }, [image = '', ...args], flags) => {
    const mode = MODES.get(flags.mode ?? '');
    if (mode === undefined) throw new UsageError(`Unknown mode: ${flags.mode}`);
    const Secrets = await secretReferences(connection, flags.secret);
    const Configs = await configReferences(connection, flags.config);
    const bare: cluster.ServiceSpec = {
      Name: flags.name ?? '',
      Labels: mapOf(flags.label),
      TaskTemplate: {
        ContainerSpec: {
          Image: image,
          ...(args.length > 0 && { Args: args }),
          ...(flags.env.length > 0 && { Env: variables(flags.env) }),
          ...(flags['container-label'].length > 0 && { Labels: mapOf(flags['container-label']) }),
          ...(flags.mount.length > 0 && { Mounts: mountsOf(flags.mount) }),
          ...(Secrets.length > 0 && { Secrets }),
          ...(Configs.length > 0 && { Configs }),
        },
        Placement: { Constraints: flags.constraint },
      },
      Mode: mode,
      ...(flags.network.length > 0 && { Networks: flags.network.map((Target) => ({ Target })) }),
      ...(flags.publish.length > 0 && { EndpointSpec: { Mode: 'vip', Ports: publishedPorts(flags.publish) } }),
    };
    const headers = flags['with-registry-auth'] ? await authHeader(image) : {};
    const { ID } = await cluster.createService(connection, applySettings(bare, flags), headers);
    console.log(ID);
  },
});

/** A name alone takes the value that it has here, and is left out without one. */
export function variables(list: readonly string[]): string[] {
  return list.flatMap((word) => {
    if (word.includes('=')) return [word];
    const value = process.env[word];
    return value === undefined ? [] : [`${word}=${value}`];
  });
}

export function mountsOf(list: readonly string[]): cluster.MountWire[] {
  const host: { Mounts?: cluster.MountWire[] } = {};
  setMounts({ config: {}, host } as Parameters<typeof setMounts>[0], list);
  for (const { Type } of host.Mounts ?? []) {
    if (Type !== 'bind' && Type !== 'volume') throw new Exit(EXIT.failed, `API 1.24 has no mounts of the type ${Type}`);
  }
  return host.Mounts ?? [];
}
