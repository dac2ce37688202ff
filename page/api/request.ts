import { Store } from '../parts/store.ts';

export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;
type Method = 'GET' | 'POST' | 'DELETE' | 'PUT';
/** A body that is a Blob is sent as it is, anything else as JSON. */
type Options = Readonly<{
  query?: Query;
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
}>;

/** The version of the API that this page speaks. */
const PREFIX = 'api/v1.51';

/** Whether the engine refuses changes by this page; known from its first answer. */
export const isReadOnly = new Store(false);

/** A refusal by the engine, with its message. */
export class ApiFailure extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The session of this page is over: only a new invitation helps. */
export class SessionOver extends Error {}

/** Sends a request and returns the answer's body. Throws `ApiFailure`, `SessionOver`, or the browser's error. */
export async function call<T = void>(method: Method, path: string, options: Options = {}): Promise<T> {
  const response = await open(method, path, options);
  const text = await response.text();
  return (
    text === '' || response.headers.get('content-type')?.startsWith('application/json') !== true
      ? undefined
      : JSON.parse(text)
  ) as T;
}

/** Sends a request and returns the answer before its body is read. */
export async function open(
  method: Method,
  path: string,
  { query = {}, body, headers = {}, signal }: Options = {},
): Promise<Response> {
  const response = await fetch(apiUrl(path, query), {
    method,
    ...(body !== undefined && { body: body instanceof Blob ? body : JSON.stringify(body) }),
    headers: {
      ...(body !== undefined && { 'content-type': body instanceof Blob ? body.type : 'application/json' }),
      ...headers,
    },
    ...(signal !== undefined && { signal }),
  });
  const mode = response.headers.get('gantry-page');
  if (mode === null) throw new SessionOver(await response.text());
  isReadOnly.set(mode === 'read-only');
  if (response.status >= 400) throw new ApiFailure(response.status, await messageOf(response));
  return response;
}

/** The address of an endpoint, relative to the page. */
export function apiUrl(path: string, query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value === undefined || value === false) continue;
    for (const item of Array.isArray(value) ? value : [value])
      parameters.append(key, item === true ? '1' : String(item));
  }
  const text = parameters.toString();
  return `${PREFIX}${path}${text === '' ? '' : `?${text}`}`;
}

/** The query parameter `filters`. */
export function filters(wanted: Readonly<Record<string, readonly string[]>>): { filters: string } {
  return { filters: JSON.stringify(wanted) };
}

/** A message for people. */
export function messageOfError(error: unknown): string {
  if (error instanceof TypeError) return 'The daemon does not answer.';
  return error instanceof Error ? error.message : String(error);
}

async function messageOf(response: Response): Promise<string> {
  const text = await response.text();
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && 'message' in value) return String(value.message);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return text === '' ? `status ${response.status}` : text;
}
