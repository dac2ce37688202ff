import { constants } from 'node:os';

const ERRORS = [...Object.keys(constants.errno), 'ENOTFOUND', 'EAI_AGAIN', 'ENODATA'].join('|');
const INTERNAL = new RegExp(
  String.raw`\b(?:${ERRORS})\b|\b[a-z_]\w*\("|\bgetaddrinfo\b|/gantry-test-\w+/(?:data|exec)/`,
);

/** Returns the first word of a message that no client should read: names of the kernel, and paths of the daemon. */
export function internalWord(message: string): string | undefined {
  return INTERNAL.exec(message)?.[0];
}
