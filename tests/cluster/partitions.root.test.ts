import assert from 'node:assert/strict';
import { after, before, suite, test, type TestContext } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { Services } from '@gantry/testing/cluster/services.ts';
import { eventually } from '@gantry/testing/eventually.ts';

type Direction = 'input' | 'output';
type Container = { Id: string; Names: string[] };

/** Serves its host name as a web page on port 80; ends at once when it is told to. */
const SERVER = [
  'sh',
  '-c',
  'mkdir /www; hostname > /www/index.html; httpd -f -p 80 -h /www & trap "kill $!; exit 0" TERM; wait',
];

suite('packets are lost in one direction', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, two, three, worker]: ClusterHost[] = [];
  let services: Services;
  before(async () => {
    all = await ClusterHosts.cluster(3, 1, { image: true });
    [one, two, three, worker] = all.hosts;
    services = new Services(one!);
  });
  after(async () => await all[Symbol.asyncDispose]());

  async function drop(host: ClusterHost, direction: Direction): Promise<void> {
    const chain = `chain cut { type filter hook ${direction} priority 0; meta iifname eth0 drop; };`;
    const rule = direction === 'input' ? chain : chain.replace('iifname', 'oifname');
    await host.engine.onHost(['nft', `table inet cut { ${rule} }`]);
  }

  async function heal(host: ClusterHost): Promise<void> {
    await host.engine.onHost(['nft', 'delete table inet cut']);
  }

  function tell(context: TestContext, what: string, since: number): void {
    context.diagnostic(`${what}: ${((performance.now() - since) / 1000).toFixed(1)} s`);
  }

  for (const direction of ['output', 'input'] as const) {
    test(`the leader is ${direction === 'output' ? 'not heard' : 'deaf'}: another one leads, and what it stores the old one has when it is back`, async (context) => {
      const leader = await all.leader([one!]);
      const another = [one!, two!, three!].find((host) => host !== leader)!;
      await leader.updateNode('host4', { Labels: { last: 'word' } });
      const cut = performance.now();

      await drop(leader, direction);

      await another.updateNode('host4', { Labels: { by: direction } });
      tell(context, `the leader's ${direction} is lost, the others write`, cut);
      assert.notEqual(await all.leader([another]), leader);
      const { ID, Version, Spec } = await leader.node('host4');
      const told = await leader.engine.post(`/nodes/${ID}/update?version=${Version.Index}`, Spec);
      assert.equal(told.status, 500, told.raw.toString());

      await heal(leader);
      await leader.node('host4', (node) => node.Spec.Labels.by === direction);
      await leader.updateNode('host4', { Labels: { back: direction } });
      assert.deepEqual((await another.node('host4')).Spec.Labels, { back: direction });
    });
  }

  test('a worker is not heard, and its daemon is killed meanwhile: tasks, networks and names go on there, and are replaced elsewhere', async (context) => {
    assert.equal((await one!.engine.post('/networks/create', { Name: 'front', Driver: 'overlay' })).status, 201);
    const here = { Placement: { Constraints: ['node.hostname==host4'] }, Networks: [{ Target: 'front' }] };
    await services.create('web', { Command: SERVER }, { TaskTemplate: here });
    await services.create('asking', {}, { TaskTemplate: here });
    await services.create('spread', {}, { Mode: { Replicated: { Replicas: 4 } } });
    for (const [name, count] of [
      ['web', 1],
      ['asking', 1],
      ['spread', 4],
    ] as const)
      await services.running(name, count);
    const page = await answer();
    assert.match(page, /^[0-9a-f]{12}$/);
    const before = await containers();
    const cut = performance.now();

    await drop(worker!, 'output');
    await worker!.engine.kill();
    await worker!.engine.startAgain();

    assert.deepEqual(await containers(), before);
    assert.equal(await answer(), page);
    await one!.node('host4', ({ Status }) => Status.State === 'down');
    tell(context, 'the worker is down', cut);
    const { NodeID } = await worker!.info();
    await eventually('four tasks elsewhere', async () =>
      (await services.running('spread', 4)).every((task) => task.NodeID !== NodeID) ? true : undefined,
    );
    tell(context, 'its tasks run elsewhere', cut);
    assert.match(
      String((await services.task('web', ({ Status }) => Status.State === 'pending')).Status.Err),
      /no suitable node/,
    );
    assert.deepEqual(await containers(), before);
    assert.equal(await answer(), page);

    await heal(worker!);
    await one!.node('host4', ({ Status }) => Status.State === 'ready');
    await services.running('web', 1);
    await services.running('asking', 1);
    assert.notEqual(await eventually('an answer', async () => (await answer()) || undefined), page);
    await eventually('the stale task has ended', async () =>
      (await containers()).some((name) => name.includes('spread')) ? undefined : true,
    );
    for (const name of ['web', 'asking', 'spread']) await services.remove(name);
  });

  async function containers(): Promise<string[]> {
    const { body } = await worker!.engine.get<Container[]>('/containers/json');
    return body.map(({ Names }) => Names[0]!).toSorted();
  }

  /** Answer of the service `web`, by its name, to a task on the worker. */
  async function answer(): Promise<string> {
    const { body } = await worker!.engine.get<Container[]>('/containers/json');
    const { Id } = body.find(({ Names }) => Names[0]!.startsWith('/asking.'))!;
    const Cmd = ['sh', '-c', "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc web 80 | tail -n 1"];
    const exec = await worker!.engine.post<{ Id: string }>(`/containers/${Id}/exec`, {
      Cmd,
      AttachStdout: true,
      Tty: true,
    });
    return (await worker!.engine.post(`/exec/${exec.body.Id}/start`, { Tty: true })).raw.toString().trim();
  }
});
