import type { IndexEntry } from '../../registry/manifests.ts';

const TYPE = 'vnd.docker.reference.type';
const SUBJECT = 'vnd.docker.reference.digest';

/** The digest of the manifest that an entry attests to; undefined for an entry of another kind. */
export function attestedBy({ annotations }: Pick<IndexEntry, 'annotations'>): string | undefined {
  return annotations?.[TYPE] === 'attestation-manifest' ? (annotations[SUBJECT] ?? '') : undefined;
}

/** Whether an entry describes something beside an image, by the conventions of BuildKit: no platform runs it. */
export function isPseudoImage(entry: Pick<IndexEntry, 'annotations' | 'platform'>): boolean {
  const { platform } = entry;
  return attestedBy(entry) !== undefined || (platform?.os === 'unknown' && platform.architecture === 'unknown');
}
