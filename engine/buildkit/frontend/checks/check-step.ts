import { gitAddress } from '../../../builder/context/git-address.ts';
import { expandStep } from '../../../buildfile/expansion/expand-instruction.ts';
import { expandToWords, expandWord } from '../../../buildfile/expansion/expand.ts';
import { ExpansionBudget } from '../../../buildfile/expansion/expansion-budget.ts';
import { exposedPorts } from '../../../buildfile/expose.ts';
import type { Arg, Copy, Pair, Run, Step } from '../../../buildfile/instruction.ts';
import type { Line } from '../../../buildfile/parse.ts';
import { EngineError } from '../../../lib/errors.ts';
import { parseModeChange } from '../../../lib/notations/file-mode.ts';
import { signalNumber } from '../../../lib/notations/signal-number.ts';
import type { Linter, Place } from './linter.ts';
import { WatchedVariables, type StageScope } from './stage-scope.ts';

const SECRET = /(?:_|^)(?:apikey|auth|credentials?|key|password|pword|passwd|secret|token)(?:_|$)/i;
const NO_SECRET = /(?:_|^)public(?:_|$)/i;

/** The surroundings of a step. */
export type StepContext = Readonly<{
  linter: Linter;
  escape: string;
  /** Build arguments of the client, and those in front of the first FROM. */
  given: ReadonlyMap<string, string>;
  globals: ReadonlyMap<string, string>;
  /** Whether a path is left out of the context; undefined if nothing is. */
  isIgnored: ((path: string) => boolean) | undefined;
}>;

/** Evaluates a step as far as no file and no process is needed. Throws `invalid`. */
export function checkStep(step: Step, line: Line, scope: StageScope, context: StepContext): void {
  if (step.kind === 'arg') {
    checkArg(step, line, scope, context);
    return;
  }
  const { linter, escape } = context;
  const variables = new WatchedVariables(scope.env);
  const budget = new ExpansionBudget();
  const expanded = expandStep(step, (word) => {
    const watched = new WatchedVariables(variables);
    const text = expandWord(word, watched, escape, budget);
    scope.warnOfUndefined(linter, line, watched);
    return text;
  });
  switch (expanded.kind) {
    case 'env':
    case 'label':
      checkPairs(expanded.kind, expanded.pairs, line, { scope, linter });
      return;
    case 'workdir':
      if (!scope.hasWorkdir && !expanded.path.startsWith('/')) {
        const detail = `Relative workdir ${JSON.stringify(expanded.path)} can have unexpected results if the base image changes`;
        linter.warn('workdirRelativePath', line, detail);
      }
      scope.hasWorkdir = true;
      return;
    case 'cmd':
    case 'entrypoint':
      scope.warnOfEarlier(linter, line.word, line);
      if (expanded.command.isForShell && !scope.hasShell) {
        const detail = `JSON arguments recommended for ${line.word} to prevent unintended behavior related to OS signals`;
        linter.warn('jsonArgsRecommended', line, detail);
      }
      return;
    case 'healthcheck':
      scope.warnOfEarlier(linter, line.word, line);
      return;
    case 'shell':
      scope.hasShell = true;
      return;
    case 'expose':
      checkPorts(
        expanded.ports.flatMap((port) => expandToWords(port, scope.env, escape, budget)),
        line,
        linter,
      );
      return;
    case 'stopsignal':
      inOtherWords(() => signalNumber(expanded.signal));
      return;
    case 'volume':
      if (expanded.paths.includes('')) throw invalid('VOLUME specified can not be an empty string');
      return;
    case 'copy':
    case 'add':
      checkCopy(expanded, line, context);
      return;
    case 'run':
      checkMounts(expanded, scope);
      return;
    case 'onbuild':
      scope.triggers.push(expanded.trigger);
      return;
    case 'user':
    case 'maintainer':
  }
}

function checkArg(step: Arg, line: Line, scope: StageScope, { linter, escape, given, globals }: StepContext): void {
  for (const { name, value } of step.args) {
    warnOfSecret('ARG', name, line, linter);
    const byClient = given.get(name);
    const variables = new WatchedVariables(scope.env);
    let taken = byClient ?? (value === undefined ? globals.get(name) : undefined);
    if (taken === undefined && value !== undefined) {
      taken = expandWord(value, variables, escape);
      scope.warnOfUndefined(linter, line, variables);
    }
    const isInherited = byClient === undefined && value === undefined && taken !== undefined;
    if (!isInherited) {
      const description = descriptionOf(name, line.comments);
      const info = { name, value: taken ?? '', description, place: placeOf(line), uses: new Set<string>() };
      scope.outline.known.set(name, info);
    }
    scope.outline.used.add(name);
    scope.arguments.add(name);
    if (taken !== undefined) scope.setVariable(name, taken);
  }
}

/** The rest of the comment that begins with the name. */
export function descriptionOf(name: string, comments: readonly string[]): string {
  if (name === '') return '';
  return comments.find((comment) => comment.startsWith(`${name} `))?.slice(name.length + 1) ?? '';
}

export function placeOf({ number, end }: Place): Place {
  return { number, end };
}

function checkPairs(
  kind: 'env' | 'label',
  pairs: readonly Pair[],
  line: Line,
  { scope, linter }: Readonly<{ scope: StageScope; linter: Linter }>,
): void {
  if (line.isOldPair) {
    const { word } = line;
    const detail = `"${word} key=value" should be used instead of legacy "${word} key value" format`;
    linter.warn('legacyKeyValueFormat', line, detail);
  }
  if (kind === 'label') return;
  for (const { name, value } of pairs) {
    warnOfSecret('ENV', name, line, linter);
    scope.setVariable(name, value);
  }
}

function warnOfSecret(instruction: string, name: string, place: Place, linter: Linter): void {
  if (!SECRET.test(name) || NO_SECRET.test(name)) return;
  const detail = `Do not use ARG or ENV instructions for sensitive data (${instruction} ${JSON.stringify(name)})`;
  linter.warn('secretsUsedInArgOrEnv', place, detail);
}

function checkPorts(ports: readonly string[], place: Place, linter: Linter): void {
  for (const port of ports) {
    const protocol = port.split('/')[1] ?? '';
    if (protocol !== protocol.toLowerCase()) {
      linter.warn('exposeProtoCasing', place, `Defined protocol '${port}' in EXPOSE instruction should be lowercase`);
    }
    if (port.split('/', 1)[0]!.includes(':')) {
      const detail = `EXPOSE instruction should not define an IP address or host-port mapping, found '${port}'`;
      linter.warn('exposeInvalidFormat', place, detail);
    }
    inOtherWords(() => exposedPorts([port]), port);
  }
}

/** The refusals of the classic builder as BuildKit words them. */
function inOtherWords(work: () => unknown, port = ''): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const message = error.message
      .replace(/^Invalid ip/, 'invalid IP')
      .replace(/^Invalid (?!proto)/, 'invalid ')
      .replace(/^No port specified.*$/, `invalid port: ${JSON.stringify(port)}: no port specified`)
      .replace(/^Invalid proto/, `invalid port: ${JSON.stringify(port)}: invalid proto`);
    throw new EngineError(error.kind, message, { cause: error });
  }
}

function checkCopy(step: Copy, line: Line, { linter, isIgnored }: StepContext): void {
  if (step.chmod !== '' && parseModeChange(step.chmod) === undefined) {
    const why = /^\d/.test(step.chmod) ? '. it should be octal string and between 0 and 07777' : ': invalid syntax';
    throw invalid(`invalid chmod parameter: '${step.chmod}'${why}`);
  }
  if (step.checksum !== '') {
    if (step.sources.length !== 1) throw invalid("checksum can't be specified for multiple sources");
    if (!isRemote(step.sources[0]!)) throw invalid('checksum requires HTTP(S) or Git sources');
  }
  for (const source of step.sources) {
    if (step.kind === 'copy' && isRemote(source)) {
      const what = gitAddress(source, 'buildkit') === undefined ? 'URL' : 'git ref';
      throw invalid(`source can't be a ${what} for COPY`);
    }
    if (step.from !== '' || isRemote(source) || isIgnored?.(source) !== true) continue;
    const verb = step.kind === 'add' ? 'Add' : 'Copy';
    const detail = `Attempting to ${verb} file ${JSON.stringify(source)} that is excluded by .dockerignore`;
    linter.warn('copyIgnoredFile', line, detail);
  }
}

function isRemote(source: string): boolean {
  return gitAddress(source, 'buildkit')?.isDistinct === true || /^https?:\/\//.test(source);
}

function checkMounts({ mounts, number, end }: Run, { outline }: StageScope): void {
  for (const { type, id, source, target, isRequired } of mounts) {
    if (/^\/+$/.test(target)) throw invalid(`invalid mount target "${target}"`);
    if (type !== 'secret' && type !== 'ssh') continue;
    const name = source || id || (type === 'ssh' ? 'default' : (target.split('/').at(-1) ?? ''));
    const list = type === 'secret' ? outline.secrets : outline.ssh;
    if (!list.has(name)) list.set(name, { isRequired, place: { number, end } });
  }
}

function invalid(message: string): EngineError {
  return new EngineError('invalid', message);
}
