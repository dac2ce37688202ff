import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { unframe } from '@gantry/client/frames.ts';
import { detectCgroups, removeCgroup } from '@gantry/engine/host/cgroups/cgroups.ts';

import { BothEngines, normalised, placed, type Side } from '../both-engines.ts';
import { differences } from '../differences.ts';
import { besides, configFields, hostConfigFields, PARENT, type Probe } from './create-fields.ts';
import { makeOthers } from './run-row.ts';

type Shown = { Config: Record<string, unknown>; HostConfig: Record<string, unknown>; Mounts: unknown };
type Place = 'Config' | 'HostConfig';

for (const version of ['1.24', '1.41'] as const) {
  suite(`every field of a creation at ${version}, on our daemon and on dockerd`, () => {
    let engines: BothEngines;
    before(async () => {
      engines = await BothEngines.start(version);
      await engines.both(makeOthers);
    });
    after(async () => {
      await engines[Symbol.asyncDispose]();
      removeCgroup(detectCgroups(), PARENT);
    });

    test('the tables have every field that dockerd shows', async () => {
      const { body } = await engines.theirs.api.get<Shown>('/containers/running/json');

      const missing = [
        ...Object.keys(body.Config).filter((field) => !(field in configFields)),
        ...Object.keys(body.HostConfig).filter((field) => !(field in hostConfigFields)),
      ];
      assert.deepEqual(missing, []);
    });

    for (const [place, fields] of [
      ['Config', configFields],
      ['HostConfig', hostConfigFields],
    ] as const) {
      suite(place, { concurrency: 4 }, () => {
        for (const [field, probes] of Object.entries(fields)) {
          for (const [index, probe] of probes.entries()) {
            const what = probe.chosen === undefined ? 'as with dockerd' : `differs from dockerd: ${probe.chosen}`;
            const given = [probe.value, ...(probe.beside === undefined ? [] : [probe.beside])].map((one) =>
              JSON.stringify(one),
            );
            test(`${field} ${given.join(' beside ')}: ${what}`, async () => {
              const name = `${place}-${field}-${index}`;

              const { ours, theirs } = await engines.both(
                async (side) => await outcome(side, name, place, field, probe),
              );

              const found = differences(ours, theirs);
              if (probe.chosen === undefined) assert.deepEqual(found, []);
              else assert.notDeepEqual(found, [], 'there is no difference any more');
            });
          }
        }
      });
    }

    const MB = 1024 * 1024;
    const oldBodies: Record<string, unknown>[] = [
      { Memory: 64 * MB },
      { Memory: 64 * MB, MemorySwap: -1, CpuShares: 512, CpusetCpus: '0', Cpuset: '1' },
      { Memory: 64 * MB, HostConfig: {} },
      { Memory: 64 * MB, CpuShares: 512, CpusetCpus: '0', HostConfig: { Memory: 32 * MB, CpuShares: 0 } },
      { MemorySwap: -1, HostConfig: { Memory: 32 * MB } },
      { Cpuset: '0', HostConfig: { Memory: 32 * MB } },
      { VolumeDriver: 'local', HostConfig: { Binds: ['old-field:/m'] } },
      { Binds: ['old-field:/m'], Privileged: true, NetworkMode: 'host', RestartPolicy: { Name: 'always' } },
      { Binds: ['old-field:/m'], Privileged: true, NetworkMode: 'host', HostConfig: { Memory: 32 * MB } },
      { Memory: null, HostConfig: null },
      { Memory: 100 },
      { Memory: -5, HostConfig: {} },
      { CpusetCpus: 'x', HostConfig: {} },
      { Memory: 64 * MB, HostConfig: { Memory: null } },
    ];
    suite('fields of HostConfig beside it, as old clients write them', { concurrency: 4 }, () => {
      for (const [index, body] of oldBodies.entries()) {
        test(`POST /containers/create ${JSON.stringify(body)}: as with dockerd`, async () => {
          const name = `beside-${index}`;
          const full = { Image: 'busybox', Cmd: ['true'], ...body };

          const { ours, theirs } = await engines.both(async (side) => {
            const { api } = side;
            const made = await api.post<{ message?: string }>(`/containers/create?name=${name}`, full);
            if (made.status !== 201) return [kindOf(made.status), made.body.message];
            const shown = await api.get<Shown>(`/containers/${name}/json`);
            await api.delete(`/containers/${name}?v=1`);
            return neutral(side, shown.body.HostConfig);
          });

          // Without bindings dockerd shows null; it labels privileged containers.
          const found = differences(ours, theirs).filter(
            ({ place }) => !['PortBindings', 'SecurityOpt'].includes(place),
          );
          assert.deepEqual(found, []);
        });
      }
    });
  });
}

/** The answers to the creation and the start, what an inspect shows of the field, and what the script says. */
async function outcome(side: Side, name: string, place: Place, field: string, probe: Probe): Promise<unknown> {
  const { api } = side;
  const made = await api.post<{ message?: string; Warnings?: string[] }>(
    `/containers/create?name=${name}`,
    JSON.parse(placed(side, JSON.stringify(bodyOf(place, field, probe)))),
  );
  const { message, Warnings } = made.body;
  const created = { status: kindOf(made.status), message, warnings: [...(Warnings ?? [])] };
  const { status, body } = await api.get<Shown>(`/containers/${name}/json`);
  if (status !== 200) return neutral(side, { created });
  const shown = { value: field === 'Runtime' ? '' : (body[place][field] ?? null), mounts: { Mounts: body.Mounts } };
  const run = probe.script === undefined ? undefined : await runOf(side, name, field === 'Tty');
  await api.delete(`/containers/${name}?force=1&v=1`);
  return neutral(side, { created, shown, run });
}

async function runOf({ api }: Side, name: string, isTerminal: boolean): Promise<unknown> {
  const started = await api.post<{ message?: string } | undefined>(`/containers/${name}/start`);
  if (started.status !== 204) return { status: kindOf(started.status), message: started.body?.message };
  const ended = await api.post<{ StatusCode: number }>(`/containers/${name}/wait`);
  const { raw } = await api.get(`/containers/${name}/logs?stdout=1&stderr=1`);
  return { code: ended.body.StatusCode, output: isTerminal ? raw.toString() : unframe(raw) };
}

function bodyOf(place: Place, field: string, { value, beside = {}, script = 'true' }: Probe): unknown {
  const own = { [field]: value };
  const host = { ...besides(field), ...beside, ...(place === 'HostConfig' && own) };
  return { Image: 'busybox', Cmd: ['sh', '-c', script], ...(place === 'Config' && own), HostConfig: host };
}

/** The specification's statuses are ours; dockerd's differ within their class. */
function kindOf(status: number): string {
  return status < 400 ? String(status) : 'refused';
}

function neutral(side: Side, outcome: unknown): unknown {
  return JSON.parse(normalised(side, JSON.stringify(outcome)));
}
