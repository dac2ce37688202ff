import { Type } from 'typebox';

import type { Engine } from '../../engine.ts';
import type { AddRoutes } from '../../http/route-table.ts';
import { parseImportName } from '../../images/names/reference.ts';
import { ContainerConfigBody } from '../settings/container-config-schema.ts';
import { commitContainer } from './commit.ts';

const text = (description: string) => Type.Optional(Type.String({ description }));

const CommitQuery = Type.Object({
  container: text('Id or name'),
  repo: text('Name of the image, with or without a tag'),
  tag: text('Its tag'),
  comment: text('Of the image'),
  author: text('Of the image'),
  pause: Type.Optional(Type.Boolean({ description: 'Pause the container meanwhile; the default is true' })),
  changes: Type.Optional(
    Type.Union([Type.String(), Type.Array(Type.String())], { description: 'Instructions; may be repeated' }),
  ),
});

const Committed = Type.Object({ Id: Type.String() });

export const commitRoutes =
  (engine: Engine): AddRoutes =>
  (http) => {
    http.post('/commit', {
      schema: {
        querystring: CommitQuery,
        body: Type.Optional(Type.Union([ContainerConfigBody, Type.Null()])),
        response: { 201: Committed },
      },
      handler: async ({ query, body }, reply) => {
        const { container = '', repo, tag, comment = '', author = '', pause = true, changes = [] } = query;
        const image = await commitContainer(engine, container, {
          name: parseImportName(repo, tag),
          author,
          comment,
          pause,
          changes: [changes].flat(),
          // Docker takes an empty object for no body.
          config: body === null || body === undefined || Object.keys(body).length === 0 ? undefined : body,
        });
        return reply.code(201).send({ Id: image.id });
      },
    });
  };
