import { ServerResponse, type IncomingMessage } from 'node:http';

/** The few names that answers have; each answer sends ten of them. */
const canonicalNames = new Map<string, string>();

/** A header's name in Go's spelling, which scripts expect: `Ostype`, `X-Docker-Container-Path-Stat`. */
export function canonicalName(name: string): string {
  let canonical = canonicalNames.get(name);
  if (canonical === undefined) {
    canonical = name.toLowerCase().replaceAll(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
    canonicalNames.set(name, canonical);
  }
  return canonical;
}

/** A response that sends the names of its headers in docker's spelling, however they were set. */
export class CanonicalResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  override setHeader(name: string, value: number | string | readonly string[]): this {
    return super.setHeader(canonicalName(name), value);
  }

  override writeHead(status: number, ...rest: unknown[]): this {
    const last = rest.at(-1);
    const renamed =
      typeof last === 'object' && last !== null && !Array.isArray(last)
        ? [
            ...rest.slice(0, -1),
            Object.fromEntries(Object.entries(last).map(([name, value]) => [canonicalName(name), value])),
          ]
        : rest;
    return super.writeHead(status, ...(renamed as []));
  }
}
