import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { Copy } from '../../buildfile/instruction.ts';
import type { Archived } from '../../copies/transfer/from-archive.ts';
import { findSourcesInSteps, type SourceFound, type SourcesWanted } from '../../copies/transfer/sources.ts';
import { sha256 } from '../../layers/chain-id.ts';
import { runInSlices } from '../../lib/concurrency/slices.ts';
import { EngineError } from '../../lib/errors.ts';
import { newId, shortId } from '../../lib/ids.ts';
import { gitAddress } from '../context/git-address.ts';
import type { StageState } from '../stage.ts';
import { addedRepository } from './add-repository.ts';
import { imageRoot } from './scratch-root.ts';

/** Files to copy: their root, which is made when a step has to be done, the paths in it, and whether archives are extracted. */
export type Source = Readonly<{
  root: () => Promise<string>;
  found: readonly SourceFound[];
  extracts: boolean;
  /** Their archive, if they are copied from there. */
  archived?: () => Promise<Archived | undefined>;
}>;

type Kinds = Readonly<{ plain: string[]; addresses: string[]; repositories: string[] }>;

/** The sources of COPY and ADD: files of the context or of an image, here-documents, files of the network. */
export async function copySources(
  state: StageState,
  step: Copy,
  expand: (text: string) => string,
  resources: AsyncDisposableStack,
): Promise<Source[]> {
  const { plan } = state.build;
  const { plain, addresses, repositories } = kindsOf(step, plan.dialect === 'buildkit');
  const sources: Source[] = [];
  const work = async (): Promise<void> => {
    if (plain.length > 0) sources.push(await filesOf(state, step, plain, resources));
    if (step.heredocs.length > 0) sources.push(await documentsOf(state, step, expand));
  };
  if (plan.dialect === 'buildkit' || step.from !== '') await work();
  else await named(step, work);
  for (const address of addresses) sources.push(await state.build.download(state, address, step));
  for (const address of repositories) sources.push(await addedRepository(state, step, address));
  return sources;
}

function kindsOf({ kind, sources }: Copy, isBuildkit: boolean): Kinds {
  const kinds: Kinds = { plain: [], addresses: [], repositories: [] };
  for (const source of sources) {
    const isRepository = isBuildkit && gitAddress(source, 'buildkit')?.isDistinct === true;
    if (isRepository && kind === 'copy') throw new EngineError('invalid', "source can't be a git ref for COPY");
    if (isRepository) kinds.repositories.push(source);
    else if (kind === 'add' && isUrl(source)) kinds.addresses.push(source);
    else kinds.plain.push(source);
  }
  return kinds;
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
  const extracts = step.unpacks ?? step.kind === 'add';
  const { excluded, keepsParents } = step;
  const wanted: SourcesWanted = { words, dialect: build.plan.dialect, excluded, keepsParents };
  if (words.some(isUrl)) throw new EngineError('invalid', "source can't be a URL for COPY");
  if (step.from === '') {
    const context = await build.context();
    if (context === undefined) throw new EngineError('invalid', 'missing build context');
    const root = async (): Promise<string> => {
      await context.extract();
      return context.root;
    };
    const found = await runInSlices(findSourcesInSteps(context.tree, wanted), build.signal);
    const isWhole = excluded.length === 0 && !keepsParents && !extracts;
    const archived = async (): Promise<Archived | undefined> =>
      isWhole ? await context.archived(found, resources) : undefined;
    return { root, found, extracts, archived };
  }
  const { engine } = build;
  const image = await build.imageFrom(step.from, state);
  let mounted: Promise<string> | undefined;
  const root = async (): Promise<string> => {
    mounted ??= imageRoot(engine, image.id).then((each) => resources.use(each).path);
    return await mounted;
  };
  const compute = async (): Promise<SourceFound[]> =>
    await engine.copies.findSources(await root(), wanted, build.signal);
  const find = async (): Promise<readonly SourceFound[]> => await engine.imageSums.find(image.id, wanted, compute);
  const found = wanted.dialect === 'buildkit' ? await find() : await named(step, find);
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
