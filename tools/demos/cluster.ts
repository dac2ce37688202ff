/** `./gantry demo cluster`: three machines, a service on them, the loss of a machine, and an update under requests. */
import { setTimeout as sleep } from 'node:timers/promises';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { Services, type TaskWire } from '@gantry/testing/cluster/services.ts';

import { Requests, summary } from './requests.ts';
import { goOn, play, printTimes, say, step } from './steps.ts';

const PORT = 8080;
const REPLICAS = 5;
const SECOND_NS = 1e9;
/** Longer than the demo's longest wait on a loaded machine. */
const PATIENCE_MS = 180_000;

const started = performance.now();
await play(main);

async function main(): Promise<void> {
  await show();
  console.log(`\n${seconds(started)} in all; machines, containers and networks are gone.`);
  printTimes();
  console.log(`
What to try next:
  ./gantry daemon, then ./gantry swarm init      this machine as a cluster of one
  ./gantry swarm join-token worker               what to say on the others (docs/cluster.md)
  ./gantry service create --name web --replicas 3 -p 8080:80 IMAGE
  ./gantry service ps web                        its tasks, and the reason of a failure in full
  ./gantry bench cluster                         1,000 simulated nodes`);
}

async function show(): Promise<void> {
  const flags = ['--log-level=warn'];
  await using all = await step('three machines, each a network namespace with a daemon', async () => {
    const hosts = await ClusterHosts.start(3, { image: true, flags });
    say(hosts.hosts.map(({ name, ip }) => `${name} ${ip}`).join(', '));
    return hosts;
  });
  const [one, two, three] = all.hosts as [ClusterHost, ClusterHost, ClusterHost];
  await step('a cluster of three managers', async () => {
    await one.init();
    await two.join(one, 'Manager');
    await three.join(one, 'Manager');
    await nodesAre(one, () => ({ State: 'ready' }));
    for (const node of await one.nodes()) {
      say(`${node.Description.Hostname} ${node.Status.State}, ${node.ManagerStatus?.Leader ? 'leader' : 'manager'}`);
    }
  });
  const services = new Services(one);
  await step(`a service of ${REPLICAS} replicas, port ${PORT} of each machine`, async () => {
    await services.create('web', server(1), {
      Mode: { Replicated: { Replicas: REPLICAS } },
      UpdateConfig: { Parallelism: 2, Delay: SECOND_NS },
      TaskTemplate: { RestartPolicy: { Condition: 'any', Delay: SECOND_NS } },
      EndpointSpec: { Ports: [{ Protocol: 'tcp', TargetPort: 80, PublishedPort: PORT }] },
    });
    await run(one, services);
  });
  await using requests = new Requests(
    one.engine.netns,
    [one, two].map(({ ip }) => `http://${ip}:${PORT}/`),
  );
  await step('requests to two of the machines, 20 a second', async () => {
    await until('answers of all replicas', async () => {
      await sleep(2000);
      const seen = requests.take();
      if (seen.pages.size < REPLICAS) return undefined;
      say(`${summary(seen)}, by ${seen.pages.size} tasks:`);
      for (const [page, count] of seen.pages) say(`  ${String(count).padStart(3)} × ${page}`);
      return true;
    });
  });
  await step(
    'host3 loses power: daemon, etcd and containers are killed',
    async () => await lose(all.hosts, services, requests),
  );
  await step('host3 is switched on again', async () => {
    await three.powerOn();
    await nodesAre(one, (name) => (name === 'host3' ? { State: 'ready' } : {}));
    say('it is a ready node, and has ended what was replaced meanwhile');
  });
  await step('an update, two tasks at a time', async () => await roll(one, services, requests));
  await step('the service is removed', async () => await services.remove('web'));
}

/** Kills the third machine and waits until the service is whole again. */
async function lose(hosts: readonly ClusterHost[], services: Services, requests: Requests): Promise<void> {
  const [one, , three] = hosts as [ClusterHost, ClusterHost, ClusterHost];
  requests.take();
  const at = performance.now();
  await three.powerOff();
  await nodesAre(one, (name) => (name === 'host3' ? { State: 'down' } : {}));
  say(`after ${seconds(at)} it is seen as down; ${summary(requests.take())}`);
  await run(one, services, at);
  await sleep(3000); // requests that wait for an answer of the dead machine
  requests.take();
  await sleep(2000);
  say(`healed; since then ${summary(requests.take())}`);
}

/** Replaces all tasks by those of another template. */
async function roll(manager: ClusterHost, services: Services, requests: Requests): Promise<void> {
  requests.take();
  const at = performance.now();
  await services.update('web', (spec) => ({
    ...spec,
    TaskTemplate: { ...(spec.TaskTemplate as object), ContainerSpec: { Image: 'busybox', ...server(2) } },
  }));
  await until('the update', async () => {
    const { body } = await manager.engine.get<{ UpdateStatus?: { State: string } }>('/services/web');
    return body.UpdateStatus?.State === 'completed' ? true : undefined;
  });
  await run(manager, services, at);
  const seen = requests.take();
  say(`meanwhile ${summary(seen)}`);
  const count = (version: number): number =>
    [...seen.pages].reduce((sum, [page, times]) => sum + (page.startsWith(`version ${version} `) ? times : 0), 0);
  say(`${count(1)} by version 1, ${count(2)} by version 2`);
}

/** Serves its version and host name as a page; ends at once when it is told to. */
function server(version: number): object {
  const script =
    `mkdir -p /www; echo "version ${version} from $(hostname)" > /www/index.html; ` +
    'httpd -f -p 80 -h /www & trap "kill $!; exit 0" TERM; wait';
  return { Command: ['sh', '-c', script] };
}

/** Waits until all replicas run, and says where. */
async function run(manager: ClusterHost, services: Services, since = performance.now()): Promise<void> {
  const nodes = new Map((await manager.nodes()).map(({ ID, Description }) => [ID, Description.Hostname ?? ID]));
  const running = await until(`${REPLICAS} tasks`, async () => {
    const found = (await services.tasks('web')).filter(isRunning);
    return found.length === REPLICAS ? found : undefined;
  });
  const places = Map.groupBy(running, ({ NodeID = '' }) => nodes.get(NodeID) ?? NodeID);
  const where = [...places]
    .map(([node, { length }]) => `${length} on ${node}`)
    .toSorted((a, b) => a.slice(2).localeCompare(b.slice(2)));
  say(`after ${seconds(since)} ${running.length} tasks run: ${where.join(', ')}`);
}

function isRunning({ DesiredState, Status }: TaskWire): boolean {
  return DesiredState === 'running' && Status.State === 'running';
}

/** Waits until each node has the state that is wanted of it; undefined is any. */
async function nodesAre(manager: ClusterHost, wanted: (name: string) => { State?: string }): Promise<void> {
  await until('the states of the nodes', async () => {
    const isAsWanted = (await manager.nodes()).every(({ Description, Status }) => {
      const { State = Status.State } = wanted(Description.Hostname ?? '');
      return Status.State === State;
    });
    return isAsWanted ? true : undefined;
  });
}

/** The first result that is not undefined. */
async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await sleep(50)) {
    goOn();
    const result = await look();
    if (result !== undefined) return result;
  }
  throw new Error(`${what}: not within ${PATIENCE_MS / 1000} seconds`);
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}
