import type { Built } from '../frontend/build.ts';

/** The files of a result, in a folder of the output; empty: in the output itself. */
export type Tree = Readonly<{ built: Built; folder: string }>;

/** A folder for each of several platforms, unless the client wants all files together (`platform-split=false`). */
export function treesOf(built: readonly Built[], attributes: ReadonlyMap<string, string>): Tree[] {
  const isSplit = (attributes.get('platform-split') ?? String(built.length > 1)) === 'true';
  return built.map((each) => ({ built: each, folder: isSplit ? folderOf(each) : '' }));
}

function folderOf({ platform: { os, architecture, variant } }: Built): string {
  return [os, architecture, variant].filter(Boolean).join('_');
}
