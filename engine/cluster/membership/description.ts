import { cpus, hostname, machine, totalmem } from 'node:os';

import type { Engine } from '../../engine.ts';
import { parseGenericResources } from '../../lib/notations/generic-resources.ts';
import { LOG_DRIVERS } from '../../logs/drivers.ts';
import { VERSION } from '../../version.ts';
import { NODE_FEATURES } from '../state/features.ts';
import type { FromNode } from '../wire/schemas.ts';

export type DescriptionNeeds = Pick<Engine, 'config'> &
  Readonly<{
    volumeDrivers: { readonly names: readonly string[] };
  }>;

const NETWORK_DRIVERS = ['bridge', 'host', 'ipvlan', 'macvlan', 'null'];

/** Describes this machine for other nodes. */
export function describeNode({
  config,
  volumeDrivers,
}: DescriptionNeeds): Extract<FromNode, { say: 'hello' }>['description'] {
  const plugins = [
    ...LOG_DRIVERS.map((name) => ({ type: 'Log', name })),
    ...NETWORK_DRIVERS.map((name) => ({ type: 'Network', name })),
    ...volumeDrivers.names.map((name) => ({ type: 'Volume', name })),
  ];
  const generic = parseGenericResources(config.nodeGenericResources);
  return {
    hostname: hostname(),
    platform: { architecture: machine(), os: 'linux' },
    resources: {
      ...{ nanoCpus: cpus().length * 1e9, memoryBytes: totalmem() },
      ...(generic.length === 0 ? {} : { generic }),
    },
    engine: { version: VERSION, labels: labelsOf(config.labels), plugins },
    features: [...NODE_FEATURES],
  };
}

function labelsOf(labels: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    labels.map((label) => {
      const equals = label.indexOf('=');
      return equals < 0 ? [label, ''] : [label.slice(0, equals), label.slice(equals + 1)];
    }),
  );
}
