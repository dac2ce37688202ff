import { SessionOver } from './request.ts';

const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 5000;

/** Pieces of the body of an answer, until its end. */
export async function* bytesOf({ body }: Response): AsyncGenerator<Uint8Array> {
  if (body === null) return;
  const reader = body.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Values of an answer that has one JSON value a line. */
export async function* jsonLines<T>(source: AsyncIterable<Uint8Array>): AsyncGenerator<T> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const piece of source) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as T;
  }
}

export type Follower = Readonly<{
  /** Reads the stream until its end. */
  read: (signal: AbortSignal) => Promise<void>;
  /** The stream has broken; it is read again soon, unless the session is over. */
  onBreak?: (error: unknown) => void;
}>;

/**
 * Reads a stream again and again while the page is seen: a browser has six connections to one origin for all tabs, and a
 * hidden tab needs none. Returns the function that ends it.
 */
export function follow({ read, onBreak }: Follower): () => void {
  let reading: AbortController | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let delayMs = FIRST_RETRY_MS;
  const start = async (): Promise<void> => {
    const own = new AbortController();
    reading = own;
    const begun = performance.now();
    try {
      await read(own.signal);
      if (!own.signal.aborted) onBreak?.(undefined);
    } catch (error) {
      if (own.signal.aborted) return;
      onBreak?.(error);
      if (error instanceof SessionOver) return;
    }
    if (own.signal.aborted) return;
    delayMs = performance.now() - begun > MAX_RETRY_MS ? FIRST_RETRY_MS : Math.min(delayMs * 2, MAX_RETRY_MS);
    timer = setTimeout(() => void start(), delayMs);
  };
  const stop = (): void => {
    clearTimeout(timer);
    reading?.abort();
    reading = undefined;
  };
  const change = (): void => {
    stop();
    if (!document.hidden) void start();
  };
  document.addEventListener('visibilitychange', change);
  change();
  return () => {
    document.removeEventListener('visibilitychange', change);
    stop();
  };
}
