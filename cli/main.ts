import { Connection } from '@gantry/client/connection.ts';
import { DEFAULT_HOST, targetOf } from '@gantry/client/target.ts';
import { Command, CommanderError } from 'commander';

import { addContainerCommands } from './containers.ts';
import { addExecCommand } from './exec.ts';
import { describe, EXIT, Exit } from './exit-codes.ts';
import { addImageCommands } from './images.ts';
import { addRunCommand } from './run.ts';
import { addSystemCommands } from './system.ts';
import { wordsOf } from './words.ts';

/** What every command gets: the engine, opened when it is first used. */
export type Context = { readonly connection: Connection };

const program = new Command('gantry')
  .option('-H, --host <address>', 'the engine: unix:///path or tcp://host:port (default: $GANTRY_HOST, $DOCKER_HOST)')
  .enablePositionalOptions()
  .exitOverride()
  .configureOutput({ outputError: (text, write) => write(text) });

let opened: Connection | undefined;
const context: Context = {
  get connection() {
    opened ??= new Connection(targetOf(hostFlag(), process.env));
    return opened;
  },
};

addRunCommand(program, context);
addContainerCommands(program, context);
addExecCommand(program, context);
addImageCommands(program, context);
addSystemCommands(program, context);

// A reader that went away, such as `head`, is no error of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : EXIT.failed));

process.exitCode = await main();
opened?.[Symbol.dispose]();

async function main(): Promise<number> {
  try {
    await program.parseAsync(wordsOf(process.argv), { from: 'user' });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage;
    if (error instanceof Exit) {
      if (error.message !== '') console.error(`gantry: ${error.message}`);
      return error.code;
    }
    console.error(
      `gantry: ${describe(error, hostFlag() ?? process.env.GANTRY_HOST ?? process.env.DOCKER_HOST ?? DEFAULT_HOST)}`,
    );
    return EXIT.failed;
  }
}

function hostFlag(): string | undefined {
  return program.opts<{ host?: string }>().host;
}
