import type { Info, Version } from '@gantry/client/system.ts';
import type { DiskUsageWire } from '@gantry/engine/system/disk-usage-schema.ts';
import type { JSX } from 'preact';

import { call, isReadOnly } from '../api/request.ts';
import { Facts } from '../parts/facts.tsx';
import { List } from '../parts/list.tsx';
import { useLoad } from '../parts/load.ts';
import { attempt } from '../parts/notices.tsx';
import { useStore } from '../parts/store.ts';
import { sizeText } from '../parts/texts.ts';
import { cleanUp, type Kind } from './clean-up.ts';

/** The engine: versions, limits, the use of the disk. */
export function SystemScreen(): JSX.Element {
  const { value: info, problem } = useLoad(async () => await call<Info>('GET', '/info'), 'info');
  const { value: version } = useLoad(async () => await call<Version>('GET', '/version'), 'version');
  const { value: disk, reload } = useLoad(async () => await call<DiskUsageWire>('GET', '/system/df'), 'df');
  const readOnly = useStore(isReadOnly);
  return (
    <section class="screen">
      <div class="bar">
        <h1>System</h1>
      </div>
      {problem !== undefined && <p class="banner">{problem}</p>}
      <div class="scroller padded">
        <h2>Disk</h2>
        {disk === undefined ? (
          <p class="soft">Measuring…</p>
        ) : (
          <List
            head={['Kind', 'Number', 'Size', 'Without users', ...(readOnly ? [] : ['Change'])]}
            rows={sumsOf(disk).map(([kind, { count, bytes, unused }]) => [
              kind,
              count,
              sizeText(bytes),
              sizeText(unused),
              ...(readOnly ? [] : [<CleanUp key={kind} kind={kind} done={reload} />]),
            ])}
            none=""
          />
        )}
        <h2>Engine</h2>
        {info !== undefined && version !== undefined && <Facts facts={engineFacts(info, version)} />}
        {(info?.Warnings ?? []).length > 0 && <h2>Warnings</h2>}
        {info?.Warnings?.map((warning) => (
          <p key={warning} class="warning">
            {warning}
          </p>
        ))}
      </div>
    </section>
  );
}

function CleanUp({ kind, done }: { kind: Kind; done: () => void }): JSX.Element {
  const run = async (): Promise<void> => {
    await attempt(async () => await cleanUp(kind));
    done();
  };
  return (
    <button type="button" aria-label={`Clean up: ${kind}`} onClick={() => void run()}>
      Clean up
    </button>
  );
}

type Sums = Readonly<{ count: number; bytes: number; unused: number }>;

function sumsOf(disk: DiskUsageWire): (readonly [Kind, Sums])[] {
  const { Images = [], Containers = [], Volumes = [], BuildCache = [], LayersSize = 0 } = disk;
  const unusedImages = Images.filter(({ Containers: users }) => users === 0);
  const stopped = Containers.filter(({ State }) => State !== 'running');
  return [
    [
      'Images',
      {
        count: Images.length,
        bytes: LayersSize,
        unused: sum(unusedImages.map(({ Size, SharedSize }) => Size - Math.max(0, SharedSize))),
      },
    ],
    [
      'Containers',
      {
        count: Containers.length,
        bytes: sum(Containers.map(({ SizeRw = 0 }) => SizeRw)),
        unused: sum(stopped.map(({ SizeRw = 0 }) => SizeRw)),
      },
    ],
    [
      'Volumes',
      {
        count: Volumes.length,
        bytes: sum(Volumes.map(({ UsageData }) => UsageData.Size)),
        unused: sum(Volumes.filter(({ UsageData }) => UsageData.RefCount === 0).map(({ UsageData }) => UsageData.Size)),
      },
    ],
    [
      'Caches of builds',
      {
        count: BuildCache.length,
        bytes: sum(BuildCache.map(({ Size }) => Size)),
        unused: sum(BuildCache.filter(({ InUse }) => !InUse).map(({ Size }) => Size)),
      },
    ],
  ];
}

function engineFacts(info: Info, version: Version): (readonly [string, string | undefined])[] {
  return [
    ['Version', version.Version],
    ['API', `${version.ApiVersion} (from ${version.MinAPIVersion})`],
    ['Machine', info.Name],
    ['System', `${info.OperatingSystem}, kernel ${info.KernelVersion}`],
    ['CPUs', String(info.NCPU)],
    ['Memory', sizeText(info.MemTotal)],
    ['Data', info.DockerRootDir],
    ['Storage', info.Driver],
    ['Logs', info.LoggingDriver],
    ['Cgroups', `version ${info.CgroupVersion}, ${info.CgroupDriver}`],
    ['Runtimes', `${Object.keys(info.Runtimes).join(', ')} (usually ${info.DefaultRuntime})`],
    ['Limits', limitsText(info)],
    ['Addresses', info.DefaultAddressPools?.map(({ Base, Size }) => `${Base} in /${Size}`).join(', ')],
    ['Mirrors', info.RegistryConfig.Mirrors.join(', ')],
    ['Registries without TLS', info.RegistryConfig.InsecureRegistryCIDRs.join(', ')],
    ['Proxy', [info.HttpProxy, info.HttpsProxy].filter((one) => one !== '').join(', ')],
    ['Labels', info.Labels.join(', ')],
    ['Containers outlive the daemon', info.LiveRestoreEnabled ? 'yes' : 'no'],
    ['Security', info.SecurityOptions.join(', ')],
    ['Cluster', info.Swarm.LocalNodeState],
  ];
}

/** The limits of containers that this kernel has. */
function limitsText({ MemoryLimit, SwapLimit, CpuCfsQuota, CPUShares, CPUSet, PidsLimit }: Info): string {
  const all: readonly (readonly [boolean, string])[] = [
    [MemoryLimit, 'memory'],
    [SwapLimit, 'swap'],
    [CpuCfsQuota, 'CPU time'],
    [CPUShares, 'CPU shares'],
    [CPUSet, 'sets of CPUs'],
    [PidsLimit, 'processes'],
  ];
  return all.flatMap(([isThere, word]) => (isThere ? [word] : [])).join(', ');
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + Math.max(0, value), 0);
}
