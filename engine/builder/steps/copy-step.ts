import { posix } from 'node:path';

import type { Copy } from '../../buildfile/instruction.ts';
import type { Archived } from '../../copies/transfer/from-archive.ts';
import { sumOfAll } from '../../copies/transfer/sources.ts';
import type { Transfer } from '../../copies/transfer/transfer.ts';
import { commitLayer } from '../../layers/commit.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { parseModeChange, type ModeChange } from '../../lib/notations/file-mode.ts';
import type { StageState } from '../stage.ts';
import { copySources, type Source } from './copy-sources.ts';
import { ownerOf } from './owner.ts';
import { scratchRoot } from './scratch-root.ts';
import { storeStep } from './store-step.ts';

/** COPY and ADD. `expand` puts variables into here-documents. */
export async function copyStep(state: StageState, step: Copy, expand: (text: string) => string): Promise<void> {
  await using resources = new AsyncDisposableStack();
  const sources = await copySources(state, step, expand, resources);
  const found = sources.flatMap((source) => source.found);
  const { dialect } = state.build.plan;
  if (dialect === 'classic' && found.length > 1 && !step.destination.endsWith('/')) {
    const rule = 'the destination must be a directory and end with a /';
    throw new EngineError('invalid', `When using ${step.kind.toUpperCase()} with more than one source file, ${rule}`);
  }
  const name = step.kind.toUpperCase();
  const config = state.withComment(
    `#(nop) ${name} ${flagsOf(step).join(' ')}${sumOfAll(found)} in ${step.destination} `,
  );
  state.historyLines.push(historyLine(step));
  if (await state.takeFromCache(config)) return;
  const works = await Promise.all(
    sources.map(async ({ root, found: paths, extracts, archived: inArchive }) => {
      const archived = await inArchive?.();
      return archived === undefined ? { from: await root(), paths, extracts } : { archived };
    }),
  );
  await using root = await scratchRoot(state.build.engine, state.image?.id);
  await copyInto(state, step, root, works);
  using leases = new DisposableStack();
  const layer = await commitLayer(state.build.engine, root.id, leases, 'none', state.build.signal);
  storeStep(state, { layer, containerConfig: config });
}

type Work =
  | Readonly<{ from: string; paths: Source['found']; extracts: boolean; archived?: undefined }>
  | Readonly<{ archived: Archived }>;

async function copyInto(
  state: StageState,
  step: Copy,
  root: Awaited<ReturnType<typeof scratchRoot>>,
  works: readonly Work[],
): Promise<void> {
  const { build } = state;
  const isBuildkit = build.plan.dialect === 'buildkit';
  await using files = await root.open();
  const owner = await ownerOf(build.engine, step, files.path);
  const destination = absolute(state.config.WorkingDir, step.destination);
  const how = { destination, ...owner, ...modeOf(step.chmod, !isBuildkit) };
  for (const each of works) {
    const { archived } = each;
    await failingWords(step.destination, async () => {
      if (archived !== undefined)
        return await files.view.transferFromArchive(archived, { ...how, isBuildkit }, build.signal);
      const work: Transfer = { ...each, ...how, excluded: step.excluded, hasOwner: step.chown !== '', isBuildkit };
      return await files.view.transfer(work, build.signal);
    });
  }
}

/** The flags that the cache tells apart. Those that only choose files count by the files' checksum, and a linked layer is like any. */
function flagsOf({ chown, chmod, keepsParents, unpacks, keepsGitFolder }: Copy): string[] {
  return [
    chown && `--chown=${chown}`,
    chmod && `--chmod=${chmod}`,
    keepsParents && '--parents',
    unpacks !== undefined && `--unpack=${unpacks}`,
    keepsGitFolder === true && '--keep-git-dir',
  ].filter((flag) => typeof flag === 'string' && flag !== '') as string[];
}

/** As BuildKit writes it. */
function historyLine({ kind, keepsParents, chown, chmod, sources, heredocs, destination }: Copy): string {
  const flags = [keepsParents && '--parents', chown && `--chown=${chown}`, chmod && `--chmod=${chmod}`].filter(Boolean);
  const documents = heredocs.map(({ name }) => `<<${name}`);
  return `${[kind.toUpperCase(), ...flags, ...sources, ...documents, destination].join(' ')} # buildkit`;
}

async function failingWords(destination: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (hasCode(error, 'ENAMETOOLONG') || hasCode(error, 'ELOOP')) {
      throw new EngineError('invalid', `failed to copy files: ${destination}: ${messageOf(error)}`, { cause: error });
    }
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError(error.kind, `failed to copy files: ${error.message}`, { cause: error });
  }
}

function absolute(workingDirectory: string, destination: string): string {
  if (destination.startsWith('/')) return destination;
  const path = posix.join('/', workingDirectory, destination);
  return destination.endsWith('/') && !path.endsWith('/') ? `${path}/` : path;
}

function modeOf(chmod: string, isClassic: boolean): { mode?: ModeChange } {
  if (chmod === '') return {};
  const mode = parseModeChange(chmod);
  if (mode !== undefined && !(isClassic && (typeof mode !== 'number' || chmod.length > 4))) return { mode };
  const isDigits = isClassic || /^\d/.test(chmod);
  const why = isDigits ? '. it should be octal string and between 0 and 07777' : ': invalid syntax';
  throw new EngineError('invalid', `invalid chmod parameter: '${chmod}'${why}`);
}
