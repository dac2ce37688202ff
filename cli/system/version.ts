import { readFileSync } from 'node:fs';

import * as system from '@gantry/client/system.ts';

import { command } from '../command-line/command.ts';
import { printObject } from '../output/format.ts';
import { OBJECT_FORMAT } from '../output/list-flags.ts';

const API_VERSION = '1.24';

/** `gantry version`. */
export const version = command({
  words: '',
  count: [0, 0],
  flags: OBJECT_FORMAT,
  examples: ["gantry version --format '{{.Server.Version}}'"],
  run: async ({ connection }, _words, { format }) => {
    const client = {
      Version: ownVersion(),
      APIVersion: API_VERSION,
      NodeVersion: process.version,
      Os: 'linux',
      Arch: process.arch === 'x64' ? 'amd64' : process.arch,
    };
    if (format === undefined) console.log(sectionText('Client', client));
    const server = await system.version(connection);
    // Docker's templates use this name.
    if (format !== undefined)
      await printObject({ Client: client, Server: { ...server, APIVersion: server.ApiVersion } }, format);
    else console.log(`\n${sectionText('Engine', engineRows(server))}`);
  },
});

export function printOwnVersion(): number {
  console.log(`gantry ${ownVersion()}`);
  return 0;
}

function ownVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}

function engineRows({
  Version,
  ApiVersion,
  MinAPIVersion,
  Os,
  Arch,
  KernelVersion,
  GitCommit,
  BuildTime,
}: system.Version) {
  return {
    Version,
    'API version': `${ApiVersion} (minimum ${MinAPIVersion})`,
    'OS/Arch': `${Os}/${Arch}`,
    'Kernel version': KernelVersion,
    ...(GitCommit !== '' && { Commit: GitCommit }),
    ...(BuildTime !== '' && { Built: BuildTime }),
  };
}

const NAMES: Readonly<Record<string, string>> = { APIVersion: 'API version', NodeVersion: 'Node version' };

function sectionText(title: string, values: Readonly<Record<string, string>>): string {
  const rows = Object.entries(values).map(([name, value]) => ` ${`${NAMES[name] ?? name}:`.padEnd(17)}${value}`);
  return [`${title}:`, ...rows].join('\n');
}
