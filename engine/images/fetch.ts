import { EngineError } from '../lib/errors.ts';
import type { Report } from './progress.ts';

const CONNECT_MILLISECONDS = 30_000;

/** An archive from a web server, read while it comes. */
export async function fetchArchive(source: string, report: Report): Promise<AsyncIterable<Uint8Array>> {
  const url = urlOf(source);
  try {
    const { request } = await import('undici'); // 12 MB that most daemons never need
    const { statusCode, body } = await request(url, { headersTimeout: CONNECT_MILLISECONDS });
    if (statusCode !== 200) {
      await body.dump();
      throw new EngineError('failed', `${url.href} answers ${statusCode}`);
    }
    report({ status: `Downloading from ${url.href}` });
    return body;
  } catch (error) {
    if (error instanceof EngineError) throw error;
    throw new EngineError('failed', `${url.href} cannot be fetched: ${reasonOf(error)}`, { cause: error });
  }
}

/** Without a scheme it is a web address too: `example.com/root.tar`. */
function urlOf(source: string): URL {
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(source) ? source : `http://${source}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    throw new EngineError('invalid', `fromSrc is neither - nor a web address: ${source}`);
  }
  return url;
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
