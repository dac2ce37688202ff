import { createHash } from 'node:crypto';

/** The chain ids of layers, base first: each identifies a layer together with all layers below it. */
export function chainIds(diffIds: readonly string[]): string[] {
  const ids: string[] = [];
  for (const diffId of diffIds) {
    const below = ids.at(-1);
    ids.push(below === undefined ? diffId : sha256(`${below} ${diffId}`));
  }
  return ids;
}

export function sha256(content: string | Uint8Array): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}
