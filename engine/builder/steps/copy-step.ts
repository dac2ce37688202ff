import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { join } from 'node:path';

import type { Copy } from '../../buildfile/instruction.ts';
import { findSourcesInSteps, sumOfAll, type SourceFound } from '../../copies/transfer/sources.ts';
import type { Transfer } from '../../copies/transfer/transfer.ts';
import { sha256 } from '../../layers/chain-id.ts';
import { commitLayer } from '../../layers/commit.ts';
import { runInSlices } from '../../lib/concurrency/slices.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { newId, shortId } from '../../lib/ids.ts';
import type { StageState } from '../stage.ts';
import { ownerOf } from './owner.ts';
import { imageRoot, scratchRoot } from './scratch-root.ts';
import { storeStep } from './store-step.ts';

/** Files to copy: their root, which is made when a step has to be done, the paths in it, and whether archives are extracted. */
type Source = Readonly<{ root: () => Promise<string>; found: readonly SourceFound[]; extracts: boolean }>;

/** COPY and ADD. `expand` puts variables into here-documents. */
export async function copyStep(state: StageState, step: Copy, expand: (text: string) => string): Promise<void> {
  const { build } = state;
  const name = step.kind.toUpperCase();
  await using resources = new AsyncDisposableStack();
  const sources = await sourcesOf(state, step, expand, resources);
  const found = sources.flatMap((source) => source.found);
  if (found.length > 1 && !step.destination.endsWith('/')) {
    const rule = 'the destination must be a directory and end with a /';
    throw new EngineError('invalid', `When using ${name} with more than one source file, ${rule}`);
  }
  const flags = [step.chown && `--chown=${step.chown}`, step.chmod && `--chmod=${step.chmod}`].filter(Boolean);
  const config = state.withComment(`#(nop) ${name} ${flags.join(' ')}${sumOfAll(found)} in ${step.destination} `);
  const names = [...step.sources, ...step.heredocs.map((each) => each.word), step.destination];
  state.historyLines.push(`${[name, ...flags, ...names].join(' ')} # buildkit`);
  if (state.takeFromCache(config)) return;
  const { engine } = build;
  const works = await Promise.all(
    sources.map(async ({ root, found: ofThis, extracts }) => ({
      from: await root(),
      paths: ofThis.map(({ path }) => path),
      extracts,
    })),
  );
  await using root = await scratchRoot(engine, state.image?.id);
  {
    await using files = await root.open();
    const owner = await ownerOf(step, files.path);
    const destination = absolute(state.config.WorkingDir, step.destination);
    for (const each of works) {
      const work: Transfer = { ...each, destination, ...owner, ...modeOf(step.chmod) };
      await failingWords(step.destination, async () => await files.view.transfer(work, build.signal));
    }
  }
  using leases = new DisposableStack();
  const layer = await commitLayer(engine, root.id, leases, 'none');
  storeStep(state, { layer, containerConfig: config });
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

async function sourcesOf(
  state: StageState,
  step: Copy,
  expand: (text: string) => string,
  resources: AsyncDisposableStack,
): Promise<Source[]> {
  const words = step.sources;
  const sources: Source[] = [];
  try {
    const plain = words.filter((word) => !(step.kind === 'add' && isUrl(word)));
    if (plain.length > 0) sources.push(await filesOf(state, step, plain, resources));
    if (step.heredocs.length > 0) sources.push(await documentsOf(state, step, expand));
  } catch (error) {
    if (!(error instanceof EngineError) || step.from !== '') throw error;
    throw new EngineError(error.kind, `${step.kind.toUpperCase()} failed: ${error.message}`, { cause: error });
  }
  for (const word of words) {
    if (step.kind === 'add' && isUrl(word)) sources.push(await state.build.download(state, word, step.destination));
  }
  return sources;
}

function isUrl(source: string): boolean {
  return /^https?:\/\//.test(source);
}

async function filesOf(
  state: StageState,
  step: Copy,
  words: readonly string[],
  resources: AsyncDisposableStack,
): Promise<Source> {
  const { build } = state;
  const extracts = step.kind === 'add';
  if (words.some(isUrl)) throw new EngineError('invalid', "source can't be a URL for COPY");
  if (step.from === '') {
    const context = await build.context();
    if (context === undefined) throw new EngineError('invalid', 'missing build context');
    const root = async (): Promise<string> => {
      await context.extract();
      return context.root;
    };
    const found = await runInSlices(findSourcesInSteps(context.tree, words), build.signal);
    return { root, found, extracts };
  }
  const { engine } = build;
  const image = await build.imageFrom(step.from, state);
  let mounted: Promise<string> | undefined;
  const root = async (): Promise<string> => {
    mounted ??= imageRoot(engine, image.id).then((each) => resources.use(each).path);
    return await mounted;
  };
  const compute = async (): Promise<SourceFound[]> => await engine.copies.findSources(await root(), words);
  const found = await named(step, async () => await engine.imageSums.find(image.id, words, compute));
  return { root, found, extracts };
}

async function named<T>(step: Copy, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError(error.kind, `${step.kind.toUpperCase()} failed: ${error.message}`, { cause: error });
  }
}

/** Here-documents as files under their names. */
async function documentsOf(
  { build }: StageState,
  { heredocs }: Copy,
  expand: (text: string) => string,
): Promise<Source> {
  const root = join(build.folder, shortId(newId()));
  await mkdir(root, { mode: 0o755 });
  const found: SourceFound[] = [];
  for (const { name, content, isExpanded } of heredocs) {
    if (name.includes('/') || name === '.' || name === '..') {
      throw new EngineError('invalid', `a here-document cannot be called ${JSON.stringify(name)}`);
    }
    const text = isExpanded ? expandLines(content, expand) : content;
    const path = join(root, name);
    await writeFile(path, text);
    await chmod(path, 0o644); // regardless of the umask: the file goes into the image
    found.push({ path: name, sum: `file:${sha256(`${name}\0${text}`).replace('sha256:', '')}` });
  }
  return { root: async () => await Promise.resolve(root), found, extracts: false };
}

/** Quotes in a document are ordinary characters; only variables are expanded. */
function expandLines(content: string, expand: (text: string) => string): string {
  return expand(content.replaceAll(/["']|\\(?!\$)/g, (sign) => `\\${sign}`));
}

function absolute(workingDirectory: string, destination: string): string {
  if (destination.startsWith('/')) return destination;
  const path = posix.join('/', workingDirectory, destination);
  return destination.endsWith('/') && !path.endsWith('/') ? `${path}/` : path;
}

function modeOf(chmod: string): { mode?: number } {
  if (chmod === '') return {};
  if (!/^[0-7]{1,4}$/.test(chmod))
    throw new EngineError(
      'invalid',
      `invalid chmod parameter: '${chmod}'. it should be octal string and between 0 and 07777`,
    );
  return { mode: Number.parseInt(chmod, 8) };
}
