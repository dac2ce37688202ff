import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The runtime could not start the process. `exitCode` is what a shell would say: 126, 127, or 128 for the rest. */
export class StartFailed extends Error {
  override readonly name = 'StartFailed';
  readonly exitCode: 126 | 127 | 128;

  constructor(message: string, exitCode: 126 | 127 | 128) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The kernel's refusal in dockerd's words. 126 is a shell's code for a file that it cannot execute. */
export function tooLong(kind: 'container' | 'exec', command = ''): StartFailed {
  const reason = `unable to start container process: exec ${command}: argument list too long: unknown`;
  const text =
    kind === 'exec'
      ? `OCI runtime exec failed: exec failed: ${reason}`
      : `failed to create shim task: OCI runtime create failed: runc create failed: ${reason}`;
  return new StartFailed(text, 126);
}

/** The names of the runtime's log and of its settings. */
type Files = Readonly<{ log: string; process: string }>;
const FILES = {
  container: { log: 'runtime.log', process: 'config.json' },
  exec: { log: 'runtime.log', process: 'process.json' },
};

const MOUNT_HINT =
  'Are you trying to mount a directory onto a file (or vice-versa)? ' +
  'Check if the specified host path exists and is the expected type';

/**
 * Why a start failed, in dockerd's words: what the runtime wrote into its own log, or else what the shim saw.
 *
 * An exec of a missing command, or in a missing folder, has 127, as in dockerd 28; for any other reason 126, as in dockerd 20.10.
 */
export function startFailure(
  directory: string,
  kind: 'container' | 'exec',
  seen: string,
  files: Files = FILES[kind],
): StartFailed {
  const said = lastError(directory, files) ?? seen;
  const command = commandOf(directory, files);
  const reason = inRuncsWords(said, command, kind);
  if (kind === 'exec') {
    const isMissing = /no such file or directory/i.test(reason) || exitCodeFor(reason, command) === 127;
    const exitCode = isMissing ? 127 : 126;
    return new StartFailed(`OCI runtime exec failed: ${reason}: unknown`, exitCode);
  }
  // We create and start in one step; clients know the message of docker's create step.
  const known = reason.replace(/^runc run failed: /, 'runc create failed: ');
  const message = `failed to create shim task: OCI runtime create failed: ${known}: unknown`;
  const hint = /not a directory/i.test(reason) ? `: ${MOUNT_HINT}` : '';
  return new StartFailed(message + hint, exitCodeFor(reason, command));
}

/**
 * Rewords crun's messages about a failed start as runc's, which clients and users know. Other messages are returned
 * unchanged.
 */
function inRuncsWords(said: string, command: string, kind: 'container' | 'exec'): string {
  const told = crunsProcessError(said, command);
  if (told === undefined) return said;
  return `${kind === 'exec' ? 'exec failed' : 'crun create failed'}: unable to start container process: ${told}`;
}

/** Each has two forms: that of crun 1.8, and that of 1.21, which names the path. */
function crunsProcessError(said: string, command: string): string | undefined {
  const quoted = JSON.stringify(command);
  if (/^(?:executable file `.*` not found|cannot find `` in \$PATH)/s.test(said)) {
    const isPath = command.includes('/');
    return `exec: ${quoted}: ${isPath ? `stat ${command}: no such file or directory` : 'executable file not found in $PATH'}`;
  }
  // crun 1.8 takes an empty word for the folder that it is in.
  if (command === '' && said.startsWith('open executable')) return 'exec: "": executable file not found in $PATH';
  const opening = /^(?:open executable|cannot open `.*`|the path `.*` (?:is not|exists but).*): (?<problem>.+)$/s.exec(
    said,
  )?.groups?.problem;
  if (opening === 'Not a directory') return `exec: ${quoted}: stat ${command}: not a directory`;
  if (opening !== undefined) return `exec: ${quoted}: permission denied`; // not a file, or not executable
  const running = /^exec(?: container process[^`]*`.*`)?: (?<problem>.+)$/s.exec(said)?.groups?.problem;
  if (running !== undefined) return `exec ${command}: ${running.toLowerCase()}`;
  const changing = /^chdir (?:to )?`(?<folder>.*)`: (?<problem>.+)$/s.exec(said)?.groups;
  if (changing === undefined) return undefined;
  return `chdir to cwd (${JSON.stringify(changing.folder)}) set in config.json failed: ${changing.problem?.toLowerCase()}`;
}

/** Message of runc 1.1.15; older ones say that permission is denied. */
const isFolder = /exec: ".*": is a directory/s;

/** The words that dockerd searches for, in its order; the runtime reports the reason only as text. */
export function exitCodeFor(reason: string, command: string): 126 | 127 | 128 {
  const said = reason.toLowerCase();
  if (said.includes('not a directory')) return 127;
  if (said.includes('permission denied') || isFolder.test(said)) return 126;
  const isMissing = said.includes('executable file not found') || said.includes('no such file or directory');
  return isMissing && said.includes(command.toLowerCase()) ? 127 : 128;
}

type Process = { args?: string[] };

/** The last complete error line: a killed runtime, or a full disk, leaves a truncated one. */
function lastError(directory: string, { log }: Files): string | undefined {
  const lines = read(directory, log).split('\n');
  return lines.map(errorIn).findLast((message) => message !== undefined);
}

function errorIn(line: string): string | undefined {
  const entry = parseLine(line) as { level?: unknown; msg?: unknown } | null | undefined;
  const isError = entry?.level === 'error' || entry?.level === 'fatal';
  return isError && typeof entry.msg === 'string' ? entry.msg : undefined;
}

function commandOf(directory: string, files: Files): string {
  const described = parseLine(read(directory, files.process)) as (Process & { process?: Process }) | undefined;
  return (described?.process ?? described)?.args?.[0] ?? '';
}

function parseLine(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** An unreadable log explains nothing; the failure itself is reported anyway. */
function read(directory: string, name: string): string {
  try {
    return readFileSync(join(directory, name), 'utf8');
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) return '';
    throw error;
  }
}
