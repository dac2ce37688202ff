import type { RateLimiter } from '../limiter.ts';
import { refusalOf, type RefusalStyle } from '../present.ts';
import type { Caller, Endpoint, EndpointDefinition } from '../types.ts';
import { withHeaders } from './fetch.ts';

/** A context of Hono, as far as it is read here; its own types fit. */
type HonoContext = { readonly req: Readonly<{ method: string }>; res: Response };

export type HonoLimits<Context> = Readonly<{
  limiter: RateLimiter;
  /** The route and its properties. Default name: the method, with one endpoint for all paths. */
  limit?: Partial<EndpointDefinition>;
  /** The sender of a request. A context does not know its sender's address: the server's bindings do. */
  caller: (context: Context) => Caller | Promise<Caller>;
  style?: RefusalStyle;
}>;

/**
 * A middleware: `app.get('/hello', honoLimits({ limiter, limit: { name: 'GET /hello' }, caller }), handler)`. A request is under
 * way until the last byte of its answer was read.
 */
export function honoLimits<Context extends HonoContext>(
  limits: HonoLimits<Context>,
): (context: Context, next: () => Promise<void>) => Promise<Response | void> {
  const { limiter, limit, caller, style } = limits;
  const endpoints = new Map<string, Endpoint>();
  return async (context, next) => {
    const { method } = context.req;
    const name = limit?.name ?? `${method} *`;
    const endpoint = endpoints.get(name) ?? limiter.endpoint({ ...limit, name });
    endpoints.set(name, endpoint);
    const decision = await limiter.admit(await caller(context), endpoint);
    if (!decision.allowed) {
      const { status, statusText = '', headers, body } = refusalOf(decision, style);
      return new Response(method === 'HEAD' ? null : body, { status, statusText, headers });
    }
    decision.begin();
    try {
      await next();
      context.res = withHeaders(context.res, decision);
    } catch (error) {
      decision.end();
      throw error;
    }
  };
}
