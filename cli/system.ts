import { readFileSync } from 'node:fs';

import { jsonLines } from '@gantry/client/json-lines.ts';
import * as system from '@gantry/client/system.ts';
import type { Command } from 'commander';

import { collect, filtersOf } from './flags.ts';
import type { Context } from './main.ts';

/** `version`, `info`, `events`. */
export function addSystemCommands(program: Command, context: Context): void {
  program
    .command('version')
    .description('versions of this program and of the engine')
    .action(async () => {
      const own = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8')) as { version: string };
      console.log(`Client:  ${own.version}`);
      const { Version, ApiVersion, KernelVersion, Os, Arch } = await system.version(context.connection);
      console.log(`Engine:  ${Version}\nAPI:     ${ApiVersion}\nOS/Arch: ${Os}/${Arch}\nKernel:  ${KernelVersion}`);
    });

  program
    .command('info')
    .description('what the engine is and has')
    .action(async () => {
      for (const [name, value] of Object.entries(await system.info(context.connection))) {
        console.log(`${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`);
      }
    });

  program
    .command('events')
    .description('what happens, as it happens')
    .option('--since <time>', 'from then on')
    .option('--until <time>', 'up to then')
    .option('-f, --filter <filter>', 'key=value', collect, [])
    .action(async (flags: { since?: string; until?: string; filter: string[] }) => {
      const stream = await system.events(context.connection, {
        since: flags.since,
        until: flags.until,
        filters: filtersOf(flags.filter),
      });
      for await (const event of jsonLines<system.EventMessage>(stream)) console.log(eventText(event));
    });
}

function eventText({ Type, Action, Actor, timeNano }: system.EventMessage): string {
  const time = Temporal.Instant.fromEpochNanoseconds(BigInt(Math.trunc(timeNano / 1e6)) * 1_000_000n);
  const attributes = Object.entries(Actor.Attributes).map(([name, value]) => `${name}=${value}`);
  return `${time.toString()} ${Type} ${Action} ${Actor.ID} (${attributes.join(', ')})`;
}
