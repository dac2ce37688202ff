import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { BothEngines, docker, type Side } from '../both-engines.ts';

const execute = promisify(execFile);

/**
 * `web` begins when `db` is healthy; `edge` is in one network with it, and not with `db`. The checks are rare, because
 * each one costs both engines more than the rest of the project.
 */
const PROJECT = (greeting: string): string => `version: "2.4"
services:
  db:
    image: busybox
    command: sh -c "echo of-db > /data/name; touch /data/ready; exec httpd -f -p 5432 -h /data"
    stop_signal: SIGKILL
    volumes: ["data:/data"]
    networks: {back: {aliases: [database]}}
    healthcheck: {test: "wget -q -O /dev/null http://127.0.0.1:5432/ready", interval: 2s, timeout: 30s, retries: 50}
  web:
    image: busybox
    command: sh -c "mkdir /www; echo $$GREETING $$(wget -q -O - http://database:5432/name) > /www/index.html; exec httpd -f -p 80 -h /www"
    stop_signal: SIGKILL
    environment: {GREETING: ${greeting}}
    depends_on: {db: {condition: service_healthy}}
    volumes: ["shared:/shared:ro"]
    networks: [front, back]
  edge:
    image: busybox
    command: sleep 100000
    stop_signal: SIGKILL
    depends_on: [web]
    volumes: ["shared:/shared"]
    ports: ["127.0.0.1:8093:80"]
    networks: {front: {ipv4_address: 10.93.0.99}}
networks:
  front: {ipam: {config: [{subnet: 10.93.0.0/24}]}}
  back: {internal: true, labels: {tier: low}}
volumes:
  data: {labels: {kept: "yes"}}
  shared: {}
`;

type Step = readonly [what: string, result: unknown];
type Container = {
  Name: string;
  State: { Status: string; Health?: { Status: string } };
  Config: { Labels: Record<string, string>; Env: string[] };
  NetworkSettings: { Networks: Record<string, { Aliases: string[] | null }>; Ports: object };
  Mounts: { Name: string; Destination: string; RW: boolean }[];
};

type Labels = Record<string, string> | null;
type Network = { Name: string; Driver: string; Internal: boolean; Labels: Labels };
type Volume = { Name: string; Driver: string; Labels: Labels };

/** docker-compose 1.29 with a whole project, on our daemon and on dockerd: after each step both have the same. */
suite('a project of docker-compose 1.29', { concurrency: false }, () => {
  let engines: BothEngines;
  let ran: { ours: Step[]; theirs: Step[] };

  before(async () => {
    engines = await BothEngines.start();
    ran = await engines.both(runProject);
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const what of [
    'three services, two networks and two volumes are there, and those that waited for health run',
    'services find each other by name and alias, and the network that edge is not in is closed to it',
    'a volume is shared',
    'a service is scaled to three, and its name leads to all of them',
    'nothing is made anew when nothing has changed',
    'a changed service is made anew, one container after the other, and the others stay',
    'a service is scaled down',
    'the project stops and starts again, with its data',
    'down leaves the volumes, down -v nothing',
  ]) {
    test(what, () => {
      const [ours, theirs] = [ran.ours, ran.theirs].map((steps) => steps.find(([name]) => name === what));

      assert.notEqual(theirs, undefined);
      assert.deepEqual(ours, theirs);
    });
  }
});

async function runProject(side: Side): Promise<Step[]> {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-compose-'));
  try {
    return await steps(side, folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function steps(side: Side, folder: string): Promise<Step[]> {
  const compose = async (...words: string[]): Promise<string> => {
    const env = {
      PATH: process.env.PATH,
      HOME: folder,
      DOCKER_HOST: `unix://${side.socketPath}`,
      COMPOSE_API_VERSION: '1.24',
    };
    const { stdout } = await execute('docker-compose', ['--no-ansi', '-p', 'shop', ...words], { cwd: folder, env });
    return stdout;
  };
  const write = (greeting: string): void => writeFileSync(join(folder, 'docker-compose.yml'), PROJECT(greeting));
  const up = async (...words: string[]): Promise<string> => await compose('up', '-d', '-t', '0', ...words);
  const exec = async (name: string, script: string): Promise<string> =>
    (await docker(side, ['exec', `shop_${name}`, 'sh', '-c', script])).stdout;
  const inEdge = async (script: string): Promise<string> => await exec('edge_1', script);
  const page = (url: string): string => `until wget -q -O - ${url}; do sleep 0.2; done`;
  const ids = async (service = ''): Promise<string[]> => {
    const filters = encodeURIComponent(JSON.stringify({ name: [`shop_${service}`] }));
    const { body } = await side.api.get<{ Id: string }[]>(`/containers/json?filters=${filters}`);
    return body.map(({ Id }) => Id);
  };
  const done: Step[] = [];
  const step = async (what: string, ...results: unknown[]): Promise<void> => {
    done.push([what, [...results, await state(side)]]);
  };

  write('hello');
  await up();
  await step('three services, two networks and two volumes are there, and those that waited for health run');

  await step(
    'services find each other by name and alias, and the network that edge is not in is closed to it',
    await inEdge(page('http://web/')),
    await inEdge('nslookup -type=a database >/dev/null && echo found || echo none'),
    await inEdge('ping -c 1 -W 1 10.93.0.99 >/dev/null && echo itself'),
  );

  await inEdge('echo written > /shared/file');
  await step('a volume is shared', await exec('web_1', 'cat /shared/file'));

  await up('--scale', 'web=3');
  await step(
    'a service is scaled to three, and its name leads to all of them',
    await inEdge('nslookup -type=a web | grep -c "Address: 10.93.0"'),
  );

  const before = await ids();
  await up('--scale', 'web=3');
  await step('nothing is made anew when nothing has changed', same(before, await ids()));

  const others = [await ids('db'), await ids('edge')];
  write('changed');
  await up('--scale', 'web=3', '--no-deps', 'web');
  const texts: string[] = [];
  for (const index of ['1', '2', '3']) {
    texts.push(await exec(`web_${index}`, page('http://127.0.0.1/')));
  }
  await step(
    'a changed service is made anew, one container after the other, and the others stay',
    texts,
    [same(others[0]!, await ids('db')), same(others[1]!, await ids('edge'))],
    (await ids()).filter((id) => before.includes(id)).length,
  );

  await up('--scale', 'web=1');
  await step('a service is scaled down', (await ids('web')).length);

  await compose('stop', '-t', '0');
  const stopped = await state(side);
  await compose('start');
  await step('the project stops and starts again, with its data', stopped, await inEdge('cat /shared/file'));

  await compose('down', '-t', '0');
  const left = await state(side);
  await up();
  const kept = await inEdge('cat /shared/file');
  await compose('down', '-v', '-t', '0');
  await step('down leaves the volumes, down -v nothing', left, kept);
  return done;
}

function same(before: readonly string[], now: readonly string[]): boolean {
  return JSON.stringify(before.toSorted()) === JSON.stringify(now.toSorted());
}

/** Objects of the project. */
async function state(side: Side): Promise<unknown> {
  const { body: list } = await side.api.get<{ Id: string }[]>('/containers/json?all=1');
  const containers = await Promise.all(
    list.map(async ({ Id }) => {
      const { body } = await side.api.get<Container>(`/containers/${Id}/json`);
      return {
        name: body.Name,
        status: body.State.Status,
        isChecked: body.State.Health !== undefined,
        labels: body.Config.Labels['com.docker.compose.container-number'],
        greeting: body.Config.Env.find((one) => one.startsWith('GREETING=')),
        networks: Object.entries(body.NetworkSettings.Networks)
          .map(
            ([name, { Aliases }]) =>
              `${name}: ${(Aliases ?? [])
                .filter((one) => one !== Id.slice(0, 12))
                .toSorted()
                .join()}`,
          )
          .toSorted((x, y) => (x < y ? -1 : 1)),
        ports: body.NetworkSettings.Ports,
        mounts: body.Mounts.map(({ Name, Destination, RW }) => `${Name} ${Destination} ${RW}`).toSorted((a, b) =>
          a < b ? -1 : 1,
        ),
      };
    }),
  );
  const { body: networks } = await side.api.get<Network[]>('/networks');
  const { body: volumes } = await side.api.get<{ Volumes: Volume[] | null }>('/volumes');
  return {
    containers: containers.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    networks: networks
      .map(({ Name, Driver, Internal, Labels }) => `${Name} ${Driver} ${Internal} ${Labels?.['tier']}`)
      .toSorted(),
    volumes: (volumes.Volumes ?? [])
      .map(({ Name, Driver, Labels }) => `${Name} ${Driver} ${Labels?.['kept']}`)
      .toSorted(),
  };
}
