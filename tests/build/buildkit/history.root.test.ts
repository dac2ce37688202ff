import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { Nothing } from '@gantry/engine/buildkit/messages/common.ts';
import { StatusRequest, StatusResponse } from '@gantry/engine/buildkit/messages/control.ts';
import * as messages from '@gantry/engine/buildkit/messages/history.ts';
import type { GrpcClient } from '@gantry/engine/buildkit/wire/client.ts';
import type { Message, Received } from '@gantry/engine/buildkit/wire/message.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { clients, Project } from './project.ts';
import { builderClient } from './session-client.ts';

const CONTROL = '/moby.buildkit.v1.Control/';
const CONTENT = '/containerd.services.content.v1.Content/';
const SECRET = 'open-sesame-48151623';

type HistoryRecord = NonNullable<Received<typeof messages.HistoryEvent>['record']>;

suite('the history of builds', { skip: clients === undefined && 'its packages could not be fetched' }, () => {
  const { signal } = new AbortController();
  let engine: TestEngine;
  let project: Project;
  let client: GrpcClient;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    project = await Project.make(engine.socketPath);
    client = await builderClient(engine.socketPath);
  });
  after(async () => {
    client.close();
    await project[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  async function streamed<Request, Response>(
    path: string,
    request: Message<unknown, Request>,
    response: Message<Response, never>,
    value: Request,
  ): Promise<Response[]> {
    using exchange = client.exchange(path, request, response, signal);
    await exchange.send(value);
    exchange.end();
    return await Array.fromAsync(exchange.responses);
  }
  const records = async (ref = ''): Promise<HistoryRecord[]> => {
    const { HistoryRequest, HistoryEvent } = messages;
    const events = await streamed(`${CONTROL}ListenBuildHistory`, HistoryRequest, HistoryEvent, {
      endsEarly: true,
      ref,
    });
    return events.map(({ record }) => record!);
  };
  const update = async (request: Readonly<{ ref: string; deletes?: boolean; isPinned?: boolean }>): Promise<unknown> =>
    await client.call(`${CONTROL}UpdateBuildHistory`, messages.UpdateHistoryRequest, Nothing, request, signal);
  const linesOf = async (ref: string): Promise<string> => {
    const all = await streamed(`${CONTROL}Status`, StatusRequest, StatusResponse, { ref });
    return all.flatMap(({ logs }) => logs.map(({ text }) => Buffer.from(text).toString())).join('');
  };

  test('has options, steps and lines of builds, also when the daemon was killed, and none of their secrets', async () => {
    const file = 'FROM busybox\nARG A\nRUN --mount=type=secret,id=s wc -c < /run/secrets/s; echo said $A\n';
    await project.write({ secret: SECRET });
    const built = await project.build(
      'first',
      { Dockerfile: file },
      ...['--network=none', '--build-arg', 'A=b', '--secret', 'id=s,src=secret'],
    );
    assert.equal(built.code, 0, built.text);
    const failed = await project.build('failed', { Dockerfile: 'FROM busybox\nRUN exit 3\n' }, '--network=none');
    assert.equal(failed.code, 1);

    const check = async (): Promise<void> => {
      const [second, first] = await records();
      assert.equal(first!.attributes.get('build-arg:A'), 'b');
      assert.match(first!.response.get('containerimage.digest')!, /^sha256:/);
      assert.equal(first!.completedSteps, first!.totalSteps);
      assert.equal(first!.error, undefined);
      assert.match(await linesOf(first!.ref), new RegExp(`^${SECRET.length}\nsaid b\n$`));
      assert.match(second!.error!.message, /did not complete successfully: exit code: 3/);
      const digest = second!.externalError!.digest;
      const read = await streamed(`${CONTENT}Read`, messages.ReadContentRequest, messages.ReadContentResponse, {
        digest,
      });
      const info = await client.call(
        `${CONTENT}Info`,
        messages.ContentInfoRequest,
        messages.ContentInfoResponse,
        { digest },
        signal,
      );
      const document = Buffer.concat(read.map(({ data }) => data));
      assert.equal(document.length, info.info!.size);
      assert.match(document.toString(), /errdefs\.Source/);
    };
    await check();
    client.close();
    await engine.kill();
    await engine.startAgain();
    client = await builderClient(engine.socketPath);
    await check();
    const folder = join(engine.dataRoot, 'build-history');
    for (const name of await readdir(folder))
      assert.ok(!(await readFile(join(folder, name))).includes(SECRET), `${name} has the secret`);
    assert.ok(!engine.log.includes(SECRET));
  });

  test('tells a build under way, and its end, to those that listen', async () => {
    using listening = client.exchange(
      `${CONTROL}ListenBuildHistory`,
      messages.HistoryRequest,
      messages.HistoryEvent,
      signal,
    );
    await listening.send({ isActiveOnly: false });
    const known = (await records()).length;
    const building = project.build('told', { Dockerfile: 'FROM busybox\nLABEL told=1\n' });
    const types: number[] = [];
    for await (const { type, record } of listening.responses) {
      if (record!.attributes.get('filename') === 'no such') assert.fail();
      types.push(type);
      if (types.length === known + 2) break;
    }
    assert.equal((await building).code, 0);
    assert.deepEqual(types.slice(known), [messages.EventType.STARTED, messages.EventType.COMPLETE]);
  });

  test('loses the records that are deleted; a build in it cannot be begun again', async () => {
    const [newest] = await records();
    const { ref } = newest!;
    await update({ ref, isPinned: true });
    assert.equal((await records(ref))[0]!.isPinned, true);

    await update({ ref, deletes: true });

    assert.deepEqual(await records(ref), []);
    await assert.rejects(update({ ref, deletes: true }), { code: 5, message: /no record of a build/ });
  });
});
