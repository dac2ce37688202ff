import * as system from '@gantry/client/system.ts';

import { command } from '../command-line/command.ts';
import { yellow } from '../output/colour.ts';
import { visible } from '../output/escape.ts';
import { printObject } from '../output/format.ts';
import { memoryText } from '../output/human.ts';
import { OBJECT_FORMAT } from '../output/list-flags.ts';

/** `gantry info`. */
export const info = command({
  words: '',
  count: [0, 0],
  flags: OBJECT_FORMAT,
  about: '--format json shows all facts of the engine.',
  examples: ["gantry info --format '{{.Driver}} {{.NCPU}}'"],
  run: async ({ connection, address }, _words, { format }) => {
    const told = await system.info(connection);
    if (format !== undefined) {
      await printObject(told, format);
      return;
    }
    const rows = rowsOf(told, address);
    const width = Math.max(...rows.map(([name]) => name.length)) + 3;
    for (const [name, value] of rows) console.log(`${`${name}:`.padEnd(width)}${visible(value)}`.trimEnd());
    for (const warning of told.Warnings ?? []) console.error(`${yellow('WARNING:')} ${visible(warning)}`);
  },
});

function rowsOf(told: system.Info, address: string): [string, string][] {
  const { Containers, ContainersRunning, ContainersPaused, ContainersStopped } = told;
  const limits = Object.entries({
    'no memory limit': told.MemoryLimit,
    'no swap limit': told.SwapLimit,
    'no CPU quota': told.CpuCfsQuota,
    'no limit of processes': told.PidsLimit,
    'no IPv4 forwarding': told.IPv4Forwarding,
  }).flatMap(([text, there]) => (there ? [] : [text]));
  return [
    ['Engine', `${told.ServerVersion} at ${address}`],
    ['Name', told.Name],
    [
      'Containers',
      `${Containers} (${ContainersRunning} running, ${ContainersPaused} paused, ${ContainersStopped} stopped)`,
    ],
    ['Images', String(told.Images)],
    ['Storage driver', `${told.Driver}${told.DriverStatus.map(([name, value]) => `, ${name}: ${value}`).join('')}`],
    ['Data root', told.DockerRootDir],
    ['Logging driver', told.LoggingDriver],
    ['Cgroups', `${told.CgroupDriver}, version ${told.CgroupVersion}`],
    ['Runtimes', `${Object.keys(told.Runtimes).join(', ')} (default ${told.DefaultRuntime})`],
    ['Networks', told.Plugins.Network.join(', ')],
    ['Volumes', told.Plugins.Volume.join(', ')],
    ['Log drivers', told.Plugins.Log.join(', ')],
    ['Security', told.SecurityOptions.join(', ')],
    ['Live restore', told.LiveRestoreEnabled ? 'yes' : 'no'],
    ['Cluster', told.Swarm.LocalNodeState],
    ['Operating system', `${told.OperatingSystem} (${told.OSType}, ${told.Architecture})`],
    ['Kernel', told.KernelVersion],
    ['CPUs, memory', `${told.NCPU}, ${memoryText(told.MemTotal)}`],
    ...(limits.length > 0 ? [['Missing', limits.join(', ')] as [string, string]] : []),
    ...(told.Labels.length > 0 ? [['Labels', told.Labels.join(', ')] as [string, string]] : []),
  ];
}
