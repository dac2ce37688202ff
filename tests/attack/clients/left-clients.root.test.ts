import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { after, before, suite, test } from 'node:test';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { begin, leavesNothing } from './leaving.ts';

type Moment = 'before the answer' | 'in the middle of the body' | 'in the middle of the answer' | 'at its end';
type Row = Readonly<{
  request: string;
  moments: readonly Moment[];
  headers?: readonly string[];
  body?: Buffer;
  /** The exec to create before, for `{id}`. */
  exec?: object;
}>;

const ENDLESS: readonly Moment[] = ['before the answer', 'in the middle of the answer'];
const WHOLE: readonly Moment[] = [...ENDLESS, 'at its end'];
const SENT: readonly Moment[] = ['before the answer', 'in the middle of the body', 'at its end'];
const UPGRADE = ['Connection: Upgrade', 'Upgrade: tcp'];
const TAR = ['Content-Type: application/x-tar'];
const JSON_UPGRADE = [...UPGRADE, 'Content-Type: application/json'];
/** Reads its input, so that it ends when its client has left. */
const READER = { Cmd: ['sh', '-c', 'echo begun; exec cat'], AttachStdin: true, AttachStdout: true };
const START = Buffer.from('{"Detach":false,"Tty":false}');

const buildfile = new TarWriter().add({ name: 'Dockerfile', content: 'FROM busybox\nRUN echo begun; sleep 1000\n' });
const files = new TarWriter().add({ name: 'file', content: 'x'.repeat(300_000) });
const [context, archive] = [buildfile.end(), files.end()];
const image = await busyboxArchive();

const ROWS: readonly Row[] = [
  { request: 'GET /containers/writer/logs?stdout=1&follow=1', moments: ENDLESS },
  { request: 'GET /containers/writer/logs?stdout=1', moments: WHOLE },
  { request: 'POST /containers/writer/attach?stream=1&stdout=1&logs=1', moments: ENDLESS, headers: UPGRADE },
  { request: 'GET /events?since=1', moments: ENDLESS },
  { request: 'GET /containers/writer/stats', moments: ENDLESS },
  { request: 'GET /containers/writer/stats?stream=0', moments: ['before the answer', 'at its end'] },
  { request: 'GET /containers/writer/top', moments: ['before the answer', 'at its end'] },
  { request: 'GET /containers/writer/changes', moments: ['before the answer', 'at its end'] },
  { request: 'POST /containers/writer/wait', moments: ['before the answer'] },
  { request: 'GET /containers/writer/export', moments: WHOLE },
  { request: 'GET /containers/writer/archive?path=/bin', moments: WHOLE },
  { request: 'GET /images/busybox/get', moments: WHOLE },
  { request: 'PUT /containers/writer/archive?path=/tmp', moments: SENT, headers: TAR, body: archive },
  { request: 'POST /images/load', moments: SENT, headers: TAR, body: image },
  { request: 'POST /images/create?fromSrc=-&repo=imported', moments: SENT, headers: TAR, body: archive },
  { request: 'POST /images/create?fromImage=127.0.0.1:9/none&tag=1', moments: ['before the answer', 'at its end'] },
  { request: 'POST /exec/{id}/start', moments: ENDLESS, exec: READER, headers: JSON_UPGRADE, body: START },
  {
    request: 'POST /exec/{id}/start',
    moments: ['at its end'],
    exec: { Cmd: ['echo', 'done'], AttachStdout: true },
    headers: JSON_UPGRADE,
    body: START,
  },
  { request: 'POST /build?nocache=1', moments: ENDLESS, headers: TAR, body: context },
  { request: 'POST /build?nocache=1', moments: ['in the middle of the body'], headers: TAR, body: context },
];

suite('clients that leave', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
    const alone = { HostConfig: { NetworkMode: 'none' } };
    // More than the buffers between a client and the log, in few lines: each costs time.
    const script = 'mkdir -p /tmp; yes $(printf %0999d 0) | head -c 1000000; exec sleep 1000';
    await engine.run(['sh', '-c', script], alone, 'writer');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function leave({ request, exec, headers, body }: Row, moment: Moment): Promise<void> {
    const line = exec === undefined ? request : request.replace('{id}', await execOf(exec));
    const socket = await begin(
      engine.socketPath,
      { line, headers, body },
      moment === 'in the middle of the body' ? 700 : Infinity,
    );
    if (moment === 'in the middle of the answer') await once(socket, 'readable');
    if (moment === 'at its end') await answered(socket);
    socket.destroy();
  }

  async function execOf(exec: object): Promise<string> {
    return (await engine.post<{ Id: string }>('/containers/writer/exec', exec)).body.Id;
  }

  for (const row of ROWS) {
    for (const moment of row.moments) {
      test(`${row.request}: ${moment}, nothing stays behind`, async () => {
        await leavesNothing(engine, async () => await leave(row, moment));

        assert.equal((await engine.get('/_ping')).status, 200);
      });
    }
  }
});

/** Reads until the last chunk, or all of a body of a known length. */
async function answered(socket: Socket): Promise<void> {
  let text = '';
  for await (const chunk of socket) {
    text += (chunk as Buffer).toString('latin1');
    const [head = '', ...rest] = text.split('\r\n\r\n');
    const length = /content-length: (?<bytes>\d+)/i.exec(head)?.groups?.['bytes'];
    if (length !== undefined && rest.join('\r\n\r\n').length >= Number(length)) return;
    if (text.endsWith('\r\n0\r\n\r\n') || / (?:204|304) /.test(head.slice(0, 20))) return;
    text = head + '\r\n\r\n' + (length === undefined ? text.slice(-20) : rest.join('\r\n\r\n'));
  }
}
