import { createHash } from 'node:crypto';

/** The chain ids of layers, base first: each identifies a layer together with all layers below it. */
export function chainIds(diffIds: readonly string[]): string[] {
  const ids: string[] = [];
  for (const diffId of diffIds) ids.push(chainOn(ids.at(-1), diffId));
  return ids;
}

/** The chain id of a layer on top of another. */
export function chainOn(parent: string | undefined, diffId: string): string {
  return parent === undefined ? diffId : sha256(`${parent} ${diffId}`);
}

export function sha256(content: string | Uint8Array): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}
