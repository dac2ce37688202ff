import { testSteps } from '@gantry/testing/steps.contract.ts';

import { diskUsageSteps, infoSteps } from './versions.ts';

testSteps('infoSteps', infoSteps, [
  {
    below: '1.49',
    response: { now: { ID: 'x', FirewallBackend: { Driver: 'nftables' } }, older: { ID: 'x' } },
  },
  {
    below: '1.44',
    response: {
      now: { ID: 'x', Runtimes: { runc: { path: 'runc', runtimeArgs: ['-v'], status: { a: 'b' } } } },
      older: { ID: 'x', Runtimes: { runc: { path: 'runc', runtimeArgs: ['-v'] } } },
    },
  },
  {
    below: '1.25',
    response: {
      now: { ID: 'x', SecurityOptions: ['name=apparmor', 'name=seccomp,profile=default'] },
      older: { ID: 'x', SecurityOptions: ['apparmor', 'seccomp'] },
    },
  },
]);

const usage = { ActiveCount: 0, TotalCount: 0, Reclaimable: 0, TotalSize: 7, Items: [] };
testSteps('diskUsageSteps', diskUsageSteps, [
  {
    below: '1.52',
    response: {
      now: {
        ...{ LayersSize: 7, Images: [], Containers: [], Volumes: [], BuildCache: [], BuilderSize: 0 },
        ...{ ImageUsage: usage, ContainerUsage: usage, VolumeUsage: usage, BuildCacheUsage: usage },
      },
      older: { LayersSize: 7, Images: [], Containers: [], Volumes: [], BuildCache: [], BuilderSize: 0 },
    },
  },
  {
    below: '1.43',
    response: {
      now: { Images: [{ Id: 'x', RepoTags: [], RepoDigests: [] }] },
      older: { Images: [{ Id: 'x', RepoTags: ['<none>:<none>'], RepoDigests: ['<none>@<none>'] }] },
    },
  },
]);
