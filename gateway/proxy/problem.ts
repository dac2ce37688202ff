import type { IncomingMessage } from 'node:http';

export type Problem = Readonly<{ status: number; message: string }>;

/** Requests that Node's parser accepts and that the upstream could understand in another way. */
export function problemOf(req: IncomingMessage): Problem | undefined {
  const { headers, method, httpVersionMinor } = req;
  if (method === 'CONNECT') return { status: 405, message: 'This server is not a tunnel.' };
  // Only HTTP/1.0 may omit Host. Two Host headers could name different servers.
  if (httpVersionMinor > 0 && headers.host === undefined) {
    return { status: 400, message: 'The request has no Host header.' };
  }
  if (hasTwoHosts(req.rawHeaders)) return { status: 400, message: 'The request has more than one Host header.' };
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    return { status: 501, message: 'Only the transfer coding chunked is supported.' };
  }
  const { expect } = headers;
  if (expect !== undefined && httpVersionMinor > 0 && expect.toLowerCase() !== '100-continue') {
    return { status: 417, message: 'Only the expectation 100-continue is supported.' };
  }
  return undefined;
}

function hasTwoHosts(rawHeaders: readonly string[]): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts > 1;
}
