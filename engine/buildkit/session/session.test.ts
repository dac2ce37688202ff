import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';

import { GetSecretRequest, GetSecretResponse } from '../messages/session.ts';
import { GrpcServer } from '../wire/server.ts';
import { unary } from '../wire/service.ts';
import { GrpcError, StatusCode } from '../wire/status.ts';
import { Session } from './session.ts';

const PATH = '/moby.buildkit.secrets.v1.Secrets/GetSecret';

test('a secret that a client lacks is undefined; one that it cannot give is an error', async () => {
  const grpc = new GrpcServer(
    new Map([
      [
        PATH,
        unary(GetSecretRequest, GetSecretResponse, ({ id }) => {
          if (id === 'there') return { data: Buffer.from('content') };
          const code = id === 'missing' ? StatusCode.NOT_FOUND : StatusCode.PERMISSION_DENIED;
          throw new GrpcError(code, `secret ${id}`);
        }),
      ],
    ]),
    (error) => error as GrpcError,
  );
  const listener = createServer((socket) => grpc.accept(socket)).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  const session = new Session(connect(port, '127.0.0.1'), { id: 's', methods: [PATH] });
  const { signal } = new AbortController();

  assert.equal(String(await session.secret('there', signal)), 'content');
  assert.equal(await session.secret('missing', signal), undefined);
  await assert.rejects(session.secret('locked', signal), { code: StatusCode.PERMISSION_DENIED });
  assert.equal(await session.credentials('docker.io', signal), undefined);
  session.close();
  listener.close();
});
