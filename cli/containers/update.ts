import * as containers from '@gantry/client/containers.ts';

import { command, MANY } from '../command-line/command.ts';
import { applyFlags, CREATE_FLAGS } from '../create/flags.ts';
import { emptyRequest } from '../create/request.ts';
import { each } from '../each.ts';
import { UsageError } from '../exit-codes.ts';
import { yellow } from '../output/colour.ts';
import { visible } from '../output/escape.ts';

const {
  'blkio-weight': blkioWeight,
  'cpu-period': cpuPeriod,
  'cpu-quota': cpuQuota,
  'cpu-shares': cpuShares,
  cpus,
  'cpuset-cpus': cpusetCpus,
  'cpuset-mems': cpusetMems,
  'kernel-memory': kernelMemory,
  memory,
  'memory-reservation': memoryReservation,
  'memory-swap': memorySwap,
  restart,
} = CREATE_FLAGS;

/** `gantry update`. */
export const update = command({
  words: 'CONTAINER [CONTAINER...]',
  count: [1, MANY],
  flags: {
    'blkio-weight': blkioWeight,
    'cpu-period': cpuPeriod,
    'cpu-quota': cpuQuota,
    'cpu-shares': cpuShares,
    cpus,
    'cpuset-cpus': cpusetCpus,
    'cpuset-mems': cpusetMems,
    'kernel-memory': kernelMemory,
    memory,
    'memory-reservation': memoryReservation,
    'memory-swap': memorySwap,
    'pids-limit': { kind: 'integer', help: '', refused: 'API 1.24 sets it at the creation only' },
    restart,
  },
  offers: 'container',
  about: 'A limit of 0 stays as it is.',
  examples: ['gantry update -m 256m --memory-swap 512m web', 'gantry update --restart unless-stopped web db'],
  run: async ({ connection }, refs, flags) => {
    const request = emptyRequest({ image: '', command: [], attached: new Set() });
    applyFlags(request, flags);
    const { NetworkMode: _none, ...limits } = request.host;
    if (Object.keys(limits).length === 0) throw new UsageError('give at least one limit, or a restart policy');
    await each(refs, async (ref) => {
      for (const warning of await containers.update(connection, ref, limits)) {
        console.error(`${yellow('WARNING:')} ${visible(warning)}`);
      }
      console.log(ref);
    });
  },
});
