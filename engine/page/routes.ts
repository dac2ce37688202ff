import { Type } from 'typebox';

import type { Engine } from '../engine.ts';
import type { AddRoutes } from '../http/route-table.ts';
import { PageBody, PageInvitation } from './schema.ts';

/** Endpoints of our own: the page in a browser. */
export const pageRoutes =
  (engine: Engine): AddRoutes =>
  (http) => {
    http.post('/page', {
      schema: { body: PageBody, response: { 200: PageInvitation } },
      handler: async ({ body }) => await engine.page.invite({ readOnly: body?.ReadOnly === true }),
    });

    http.delete('/page', {
      schema: { response: { 204: Type.Null() } },
      handler: async (_request, reply) => {
        await engine.page.close();
        return reply.code(204).send(null);
      },
    });
  };
