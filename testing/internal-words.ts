import { constants } from 'node:os';

const ERRORS = [...Object.keys(constants.errno), 'ENOTFOUND', 'EAI_AGAIN', 'ENODATA', 'errno'].join('|');
/** Words of V8's, Node's and OpenSSL's parsers, of a schema's regular expressions, and of a stack. */
const PARSERS = String.raw`\b(?:ERR|HPE|UND_ERR)_[A-Z]|\w+Error: |Unexpected (?:token|end)|at position \d|[Ii]nvalid \w+ encountered|URI malformed|malformed URI|is not valid JSON|Cannot (?:read|convert|destructure)|is not (?:iterable|a function)|in JSON at|Invalid URL|call stack|null bytes|socket hang up|Parse Error|\w+ routines:|must match pattern|\(\?:|\[\^|\n {4}at `;
const INTERNAL = new RegExp(
  String.raw`\b(?:${ERRORS})\b|\b[a-z_]\w*\("|\bgetaddrinfo\b|/gantry-test-\w+/(?:data|exec)/|${PARSERS}`,
);

/** Returns the first word of a message that no client should read: names of the kernel and of parsers, and paths of the daemon. */
export function internalWord(message: string): string | undefined {
  return INTERNAL.exec(message)?.[0];
}
