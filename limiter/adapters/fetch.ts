import type { RateLimiter } from '../limiter.ts';
import { headersOf, refusalOf, type RefusalStyle } from '../present.ts';
import type { Admission, Caller, Endpoint } from '../types.ts';

export type FetchLimits<Context extends unknown[]> = Readonly<{
  /** The endpoint of a request; endpoints are made once, with `limiter.endpoint`. */
  endpoint: (request: Request, ...context: NoInfer<Context>) => Endpoint;
  /**
   * The sender of a request. A Request does not know its sender's address: the server's context does, whose type is that of
   * this function's further parameters.
   */
  caller: (request: Request, ...context: Context) => Caller | Promise<Caller>;
  style?: RefusalStyle;
}>;

type Handler<Context extends unknown[]> = (request: Request, ...context: Context) => Response | Promise<Response>;

/** Puts limits before a handler of Requests. A request is under way until the last byte of its answer was read. */
export function limitFetch<Context extends unknown[]>(
  limiter: RateLimiter,
  limits: FetchLimits<Context>,
  handler: Handler<NoInfer<Context>>,
): (request: Request, ...context: Context) => Promise<Response> {
  const { endpoint, caller, style } = limits;
  return async (request, ...context) => {
    const decision = await limiter.admit(await caller(request, ...context), endpoint(request, ...context));
    if (!decision.allowed) {
      const { status, statusText = '', headers, body } = refusalOf(decision, style);
      return new Response(request.method === 'HEAD' ? null : body, { status, statusText, headers });
    }
    decision.begin();
    try {
      return withHeaders(await handler(request, ...context), decision);
    } catch (error) {
      decision.end();
      throw error;
    }
  };
}

/** The answer with the headers of the limits; the admission ends with its last byte. */
export function withHeaders(response: Response, admission: Admission): Response {
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(headersOf(admission))) headers.set(name, value);
  const { status, statusText, body } = response;
  if (body === null) admission.end();
  return new Response(body === null ? null : endingWith(body, admission), { status, statusText, headers });
}

/** Passes the bytes on; the admission ends with them, or when nobody reads on. */
function endingWith(body: ReadableStream<Uint8Array>, admission: Admission): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        admission.end();
        controller.close();
      } catch (error) {
        admission.end();
        controller.error(error);
      }
    },
    async cancel(reason) {
      admission.end();
      await reader.cancel(reason);
    },
  });
}
