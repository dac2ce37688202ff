import { sha256 } from '../../layers/chain-id.ts';
import { badArchive } from '../../layers/tar/tar-header.ts';
import { EngineError } from '../../lib/errors.ts';
import { parseNewImage } from '../configuration/image-json.ts';
import type { Platform } from '../configuration/platform.ts';
import type { ImageDocument } from '../manifests/documents.ts';
import { parseRepoAndTag, type Reference } from '../names/reference.ts';
import { parseJson, type ArchiveFile, type ArchiveFiles } from './archive-files.ts';

/** An image of an archive: its configuration byte for byte, and the files of its layers, base first. */
export type ArchivedImage = {
  id: string;
  json: string;
  platform: Platform;
  diffIds: readonly string[];
  layers: ArchiveFile[];
  names: Reference[];
  parentId?: string;
  /** A platform of an index, the names of which are those of a later image. */
  isPart?: boolean;
  /** The document that the names stand for, and all that belongs to it. */
  target?: string;
  documents?: readonly ImageDocument[];
};

const NAME_ANNOTATIONS = ['io.containerd.image.name', 'org.opencontainers.image.ref.name'];

/** An annotation may be any text: one that is no name gives none. */
export function namesOf({ annotations }: { annotations?: Record<string, string> | null | undefined }): Reference[] {
  const name = NAME_ANNOTATIONS.map((key) => annotations?.[key]).find((text) => text !== undefined && text !== '');
  if (name === undefined) return [];
  try {
    return [parseRepoAndTag(name)];
  } catch (error) {
    if (error instanceof EngineError && error.kind === 'invalid') return [];
    throw error;
  }
}

export async function imageOf(files: ArchiveFiles, config: ArchiveFile, layers: ArchiveFile[]): Promise<ArchivedImage> {
  const json = await files.text(config);
  const { diffIds, os, architecture, variant } = parseNewImage(parseJson(json, config.path));
  if (diffIds.length !== layers.length) {
    throw badArchive(`invalid manifest, layers length mismatch: expected ${diffIds.length}, got ${layers.length}`);
  }
  return { id: sha256(json), json, platform: { os, architecture, variant }, diffIds, layers, names: [] };
}
