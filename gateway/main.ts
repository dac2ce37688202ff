import { AdminError, askCaller, askLimited, askLimits, chargeContent, forgive, override } from './admin/client.ts';
import { callerText, limitedText, limitsText } from './admin/explain.ts';
import { adminSocketPath } from './config/admin-socket.ts';
import { type Command, parseCommand, type SocketChoice, usage, UsageError } from './config/flags.ts';
import { ConfigError, type FlagValues, readConfig } from './config/read.ts';
import type { Config } from './config/schema.ts';
import { failureOf } from './lib/reason.ts';
import packageFile from './package.json' with { type: 'json' };
import type { RunningGateway } from './run.ts';
import { SocketPathError } from './unix-socket.ts';

/** docker's, of all commands. */
const USAGE_EXIT_CODE = 125;

main(process.argv.slice(2)).catch((error: unknown) => {
  const expected =
    error instanceof UsageError ||
    error instanceof AdminError ||
    error instanceof SocketPathError ||
    (error instanceof Error && error.name === 'StoreFileError') || // importing its class would load a store
    isSystemError(error);
  const problems = error instanceof ConfigError ? error.problems : expected ? [failureOf(error)] : [];
  for (const problem of problems) console.error(`gantry gateway: ${problem}`);
  if (problems.length === 0) console.error('gantry gateway:', error);
  process.exit(error instanceof UsageError ? USAGE_EXIT_CODE : 1);
});

async function main(words: readonly string[]): Promise<void> {
  const command = parseCommand(words);
  switch (command.kind) {
    case 'help':
      return console.log(usage());
    case 'check':
      readConfig(command.file);
      return console.log(`${command.file}: OK`);
    case 'run':
      return await run(command.file, command.flags);
    case 'explain':
      return await explain(command);
    case 'limits':
      return await limits(command);
    case 'forgive':
      return await forgive(socketOf(command.socket), command.caller);
    case 'override':
      return await override(socketOf(command.socket), command.caller, command.wanted);
    case 'version':
      return console.log(`gantry gateway ${packageFile.version}`);
    case 'content':
      return await chargeContent(socketOf(command.socket), command.caller, command.count);
  }
}

async function run(file: string | undefined, flags: FlagValues): Promise<void> {
  const config = readConfig(file, flags);
  const started = start(config, () => readConfig(file, flags));
  // From the beginning: a SIGHUP without a listener would end the process.
  process.on('SIGHUP', () => void started.then(async (running) => await running.reload(), ignore));
  endOnSignals(async () => await (await started)[Symbol.asyncDispose]());
  await started;
}

async function start(config: Config, read: () => Config): Promise<RunningGateway> {
  const { runGateway } = await import('./run.ts');
  return await runGateway(config, read);
}

/** A failed start is reported where it is awaited. */
function ignore(): void {}

async function explain({ caller, json, socket }: Extract<Command, { kind: 'explain' }>): Promise<void> {
  const path = socketOf(socket);
  const nowSeconds = Math.floor(Date.now() / 1000);
  const found = caller === undefined ? await askLimited(path) : await askCaller(path, caller);
  if (json) console.log(JSON.stringify(found));
  else console.log(Array.isArray(found) ? limitedText(found, nowSeconds) : callerText(found, nowSeconds));
}

async function limits({ caller, json, socket }: Extract<Command, { kind: 'limits' }>): Promise<void> {
  const found = await askLimits(socketOf(socket), caller);
  console.log(json ? JSON.stringify(found) : limitsText(found, Math.floor(Date.now() / 1000)));
}

function socketOf({ path, file }: SocketChoice): string {
  if (path === '') throw new UsageError('--socket needs a path');
  if (path !== undefined) return path;
  const configured = adminSocketPath(file === undefined ? { admin: {} } : readConfig(file));
  if (configured === undefined) throw new UsageError(`${file}: admin.socket is empty, so there is none`);
  return configured;
}

/** The first signal drains and ends, the second ends at once. */
function endOnSignals(end: () => Promise<void>): void {
  let ending = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (ending) process.exit(1);
      ending = true;
      end().then(
        () => process.exit(0),
        (error: unknown) => {
          console.error(error);
          process.exit(1);
        },
      );
    });
  }
}

/** An address in use, a file that cannot be opened: the system's reason is enough. */
function isSystemError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && 'syscall' in error;
}
