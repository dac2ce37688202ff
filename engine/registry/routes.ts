import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';

import type { Engine } from '../engine.ts';
import { clientGone } from '../http/streams/client-gone.ts';
import { credentialsOf } from './auth/credentials.ts';
import { login } from './auth/login.ts';

const text = (description: string) => Type.Optional(Type.Union([Type.String(), Type.Null()], { description }));

const LoginRequest = Type.Object({
  username: text('Name at the registry'),
  password: text('Its password'),
  auth: text('Both, with a colon between, in base64'),
  serveraddress: text('Host or URL of the registry; docker.io without'),
  identitytoken: text('Takes the place of the password'),
  registrytoken: text('Sent to the registry unchanged'),
});

const LoginAnswer = Type.Object({
  Status: Type.String(),
  IdentityToken: Type.String({ description: 'May take the place of the password; empty if the registry has none' }),
});

export const registryRoutes =
  (engine: Engine): FastifyPluginAsyncTypebox =>
  // oxlint-disable-next-line require-await -- a plugin is asynchronous by its type
  async (http) => {
    http.post('/auth', {
      schema: { body: LoginRequest, response: { 200: LoginAnswer } },
      handler: async ({ body }, reply) => {
        const signal = clientGone(reply.raw);
        const token = await login(engine, body.serveraddress ?? '', credentialsOf(body), signal);
        return { Status: 'Login Succeeded', IdentityToken: token };
      },
    });
  };
