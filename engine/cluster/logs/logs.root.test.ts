import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { after, before, suite, test } from 'node:test';

import { refused, said } from '@gantry/testing/clients/own-client.ts';
import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { Services, type TaskWire } from '@gantry/testing/cluster/services.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { assertSmallGrowth } from '@gantry/testing/memory/resident-memory.ts';

const prints = (text: string): object => ({
  Command: ['sh', '-c', `${text}; trap "exit 0" TERM; sleep 100000 & wait`],
});
const on = (node: string): object => ({ Placement: { Constraints: [`node.hostname==${node}`] } });

/** A client that follows: the frames so far, and the end of the connection. */
class Follower implements Disposable {
  readonly answer: IncomingMessage;
  readonly #chunks: Buffer[] = [];
  #last: Buffer = Buffer.alloc(0);

  constructor(answer: IncomingMessage) {
    this.answer = answer;
    answer.on('data', (chunk: Buffer) => {
      this.#last = chunk;
      this.#chunks.push(chunk);
    });
    answer.on('error', () => undefined);
  }

  static async open(host: ClusterHost, path: string): Promise<Follower> {
    const asked = request({ socketPath: host.engine.socketPath, path: `/v1.41${path}`, agent: false }).end();
    asked.on('error', () => undefined);
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    assert.equal(answer.statusCode, 200);
    return new Follower(answer);
  }

  get text(): string {
    return framesOf(Buffer.concat(this.#chunks))
      .map(([, text]) => text)
      .join('');
  }

  /** Sees this at the end of a text that may be long. */
  async ends(pattern: RegExp): Promise<void> {
    await eventually(
      `${pattern} at the end of the log`,
      async () => await Promise.resolve(pattern.test(this.#last.toString().slice(-100)) ? true : undefined),
    );
  }

  async sees(pattern: RegExp): Promise<void> {
    await eventually(`${pattern} in the log`, async () => {
      if (!pattern.test(this.text)) throw new Error(`there is only ${JSON.stringify(this.text.slice(-300))}`);
      return await Promise.resolve(true);
    });
  }

  [Symbol.dispose](): void {
    this.answer.destroy();
  }
}

function framesOf(bytes: Buffer): [type: number, text: string][] {
  const frames: [number, string][] = [];
  for (let at = 0; at + 8 <= bytes.length;) {
    const length = bytes.readUInt32BE(at + 4);
    if (at + 8 + length > bytes.length) break;
    frames.push([bytes[at]!, bytes.toString('utf8', at + 8, at + 8 + length)]);
    at += 8 + length;
  }
  return frames;
}

suite('logs of services across nodes', { concurrency: false }, () => {
  let hosts: ClusterHosts;
  let [leader, follower, worker]: ClusterHost[] = [];
  let services: Services;
  before(async () => {
    hosts = await ClusterHosts.cluster(2, 1, { image: true, version: '1.41' });
    [leader, follower, worker] = hosts.hosts;
    services = new Services(leader!);
  });
  after(async () => await hosts[Symbol.asyncDispose]());

  const logs = async (path: string, host = leader!): Promise<[number, string][]> => {
    const { status, raw } = await host.engine.get(path);
    assert.equal(status, 200, raw.toString());
    return framesOf(raw).toSorted(([, one], [, other]) => one.localeCompare(other));
  };

  test('the log of a service has the lines of all nodes, on every manager', async () => {
    const id = await services.create('web', prints('echo out; echo err >&2'), { Mode: { Global: {} } });
    const tasks = await services.running('web', 3);

    const three = [1, 2, 3];
    const lines = [...three.map(() => [2, 'err\n']), ...three.map(() => [1, 'out\n'])];
    for (const host of [leader!, follower!]) {
      await eventually('all lines', async () => {
        assert.deepEqual(await logs('/services/web/logs?stdout=1&stderr=1', host), lines);
        return true;
      });
    }
    assert.deepEqual(await logs(`/services/${id}/logs?stderr=1&tail=0`), []);
    const details = await logs('/services/web/logs?stdout=1&details=1&timestamps=1', follower);
    const expected = tasks.map(
      ({ ID, NodeID }) =>
        `com.docker.swarm.node.id=${NodeID},com.docker.swarm.service.id=${id},com.docker.swarm.task.id=${ID} out\n`,
    );
    assert.deepEqual(new Set(details.map(([, text]) => text.slice(text.indexOf(' ') + 1))), new Set(expected));
    for (const [, text] of details) assert.match(text, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z com/);
    assert.deepEqual(await logs(`/tasks/${tasks[0]!.ID}/logs?stdout=1`), [[1, 'out\n']]);
    assert.deepEqual(await logs('/services/web/logs?stdout=1&since=4000000000'), []);
  });

  test('a refusal comes before the stream', async () => {
    const refusals: [path: string, status: number, message: RegExp][] = [
      ['/services/web/logs', 400, /you must choose at least one stream/],
      ['/services/web/logs?stdout=1&tail=x', 400, /tail value must be a positive integer or "all"/],
      ['/services/web/logs?stdout=1&tail=-1', 400, /negative tail values not supported/],
      ['/services/web/logs?stdout=1&since=x', 400, /since/],
      ['/services/nope/logs?stdout=1', 404, /service nope not found/],
      ['/tasks/nope/logs?stdout=1', 404, /task nope not found/],
    ];
    for (const [path, status, message] of refusals) {
      const answer = await leader!.engine.get<{ message: string }>(path);
      assert.equal(answer.status, status, path);
      assert.match(answer.body.message, message);
    }
    assert.equal((await worker!.engine.get('/services/web/logs?stdout=1')).status, 503);
  });

  test("docker's command line names the tasks, and follows", async () => {
    const { stdout, code, stderr } = await leader!.engine.docker('service', 'logs', 'web');
    assert.equal(code, 0, stderr);
    for (const { name } of hosts.hosts) assert.match(stdout, new RegExp(`^web\\.\\w+\\.\\w+@${name} +\\| out$`, 'm'));
  });

  test("gantry's command line names the tasks", async () => {
    const lines = await said(leader!.engine, 'service', 'logs', 'web');
    for (const { name } of hosts.hosts) {
      assert.match(lines, new RegExp(`^web\\.\\w+\\.\\w{12}@${name} +\\| out$`, 'm'));
    }
    const [{ ID }] = (await services.tasks('web')) as [TaskWire];
    assert.equal(await said(leader!.engine, 'service', 'logs', '--raw', ID), 'out');
    const time = await said(leader!.engine, 'service', 'logs', '-t', '--no-resolve', ID);
    assert.match(time, /^\d{4}-\S+Z \w{12}@\w{25} +\| out$/);
    const { stderr } = await refused(leader!.engine, 'service', 'logs', 'nope');
    assert.match(stderr, /no such task or service: nope/);
  });

  test('a follower sees the lines of tasks that come later, and none twice', async () => {
    await services.create('late', prints('echo begins'), {
      TaskTemplate: on('host3'),
      Mode: { Replicated: { Replicas: 0 } },
    });
    using client = await Follower.open(follower!, '/services/late/logs?stdout=1&follow=1');

    await services.update('late', (spec) => ({ ...spec, Mode: { Replicated: { Replicas: 1 } } }));
    await client.sees(/begins/);
    await services.update('late', (spec) => ({ ...spec, Mode: { Replicated: { Replicas: 2 } } }));
    await client.sees(/begins\nbegins/);

    assert.equal(client.text, 'begins\nbegins\n');
  });

  test('a follower goes on when a worker comes back, from where it was', async () => {
    const counts = 'i=0; while true; do i=$((i+1)); echo line $i.; sleep 0.1; done';
    await services.create('counts', { Command: ['sh', '-c', counts] }, { TaskTemplate: on('host3') });
    await services.running('counts', 1);
    using client = await Follower.open(leader!, '/services/counts/logs?stdout=1&follow=1');
    await client.sees(/line 5\./);

    await worker!.engine.kill();
    await worker!.engine.startAgain();
    const [last = '0'] = /\d+(?=\.\n$)/.exec(client.text) ?? [];
    await client.sees(new RegExp(`line ${Number(last) + 30}\\.`));

    const numbers = client.text.match(/\d+/g)!.map(Number);
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index + 1),
    );
    await services.remove('counts');
  });

  test('lines that cannot be had are named at the end', async () => {
    const template = { ...on('host3'), LogDriver: { Name: 'none' } };
    await services.create('mute', prints('echo out'), { TaskTemplate: template });
    const [task] = await services.running('mute', 1);

    const reason = `task ${task!.ID}: configured logging driver does not support reading`;
    const warning = 'warning: incomplete log stream. some logs could not be retrieved for the following reasons';
    assert.deepEqual(await logs('/services/mute/logs?stdout=1'), [[3, `Error grabbing logs: ${warning}: ${reason}\n`]]);
    await services.remove('mute');

    await worker!.engine.kill();
    await leader!.node('host3', ({ Status }) => Status.State === 'down');
    const [[type, text] = [0, '']] = (await logs('/services/late/logs?stdout=1')).filter(([type]) => type === 3);
    assert.equal(type, 3);
    assert.match(text, /node \w{25} is not available\n$/);
    await worker!.engine.startAgain();
    await leader!.node('host3', ({ Status }) => Status.State === 'ready');
  });

  test('a client that does not read lets neither a manager nor the worker grow, and gets all in the end', async () => {
    const flood = `echo begins; head -c ${64 * 2 ** 20} /dev/zero | tr "\\0" x | fold -w 8191; echo; echo ends`;
    const once = { ...on('host3'), RestartPolicy: { Condition: 'none' } };
    const slow = { Command: ['sh', '-c', flood] };
    const pids = hosts.hosts.map(({ engine }) => engine.pid);
    await assertSmallGrowth(pids, 64, async () => {
      await services.create('flood', slow, { TaskTemplate: once });
      using client = await Follower.open(follower!, '/services/flood/logs?stdout=1&follow=1');
      client.answer.pause();
      await services.inState('flood', 'complete');
      client.answer.resume();
      await client.ends(/ends\n$/);
      await services.remove('flood');
    });
  });
});
