import * as cluster from '@gantry/client/cluster.ts';

import { command, MANY, type Context, type Given } from '../command-line/command.ts';
import { mapOf, splitOnce } from '../command-line/values.ts';
import { each } from '../each.ts';
import { UsageError } from '../exit-codes.ts';
import { authHeader } from '../registry/docker-config.ts';
import { mountsOf, variables } from './create-service.ts';
import { configReferences, secretReferences } from './secret-flags.ts';
import { applySettings, publishedPorts, SETTINGS } from './service-flags.ts';

const LISTS = {
  'config-add': { kind: 'list', value: 'CONFIG', help: 'A config, as at a creation', offers: 'config' },
  'config-rm': { kind: 'list', value: 'NAME', help: 'A config less' },
  'constraint-add': { kind: 'list', value: 'EXPRESSION', help: 'A further constraint' },
  'constraint-rm': { kind: 'list', value: 'EXPRESSION', help: 'A constraint less' },
  'container-label-add': { kind: 'list', value: 'NAME=VALUE', help: 'A label of its containers' },
  'container-label-rm': { kind: 'list', value: 'NAME', help: 'A label less' },
  'env-add': { kind: 'list', value: 'NAME=VALUE', help: 'A variable' },
  'env-rm': { kind: 'list', value: 'NAME', help: 'A variable less' },
  'label-add': { kind: 'list', value: 'NAME=VALUE', help: 'A label of the service' },
  'label-rm': { kind: 'list', value: 'NAME', help: 'A label less' },
  'mount-add': { kind: 'list', value: 'MOUNT', help: 'A mount' },
  'mount-rm': { kind: 'list', value: 'TARGET', help: 'A mount less' },
  'publish-add': { kind: 'list', value: '[PORT:]INSIDE', help: 'A port on all nodes' },
  'publish-rm': { kind: 'list', value: 'INSIDE', help: 'A port less, by its number inside' },
  'secret-add': { kind: 'list', value: 'SECRET', help: 'A secret, as at a creation', offers: 'secret' },
  'secret-rm': { kind: 'list', value: 'NAME', help: 'A secret less' },
} as const;

export const updateService = command({
  words: 'SERVICE',
  count: [1, 1],
  flags: {
    ...SETTINGS,
    ...LISTS,
    args: { kind: 'text', value: 'WORDS', help: 'The arguments of its program' },
    detach: { kind: 'boolean', short: 'd', help: 'As it is always: nothing is waited for' },
    force: { kind: 'boolean', help: 'Replace the tasks though nothing has changed' },
    image: { kind: 'text', help: 'The image', offers: 'image' },
    rollback: { kind: 'boolean', help: 'Take the last update back' },
  },
  offers: 'service',
  examples: ['gantry service update --image nginx:1.25 --update-parallelism 2 web'],
  run: async ({ connection }, [ref = ''], flags) => {
    const service = await cluster.inspectService(connection, ref);
    const spec = applyLists(applySettings(service.Spec, flags), flags);
    const { ForceUpdate = 0 } = spec.TaskTemplate;
    const ContainerSpec = await changeSecrets(connection, spec.TaskTemplate.ContainerSpec, flags);
    const body = {
      ...spec,
      TaskTemplate: {
        ...spec.TaskTemplate,
        ...(flags.force && { ForceUpdate: ForceUpdate + 1 }),
        ContainerSpec: {
          ...ContainerSpec,
          ...(flags.image !== undefined && { Image: flags.image }),
          ...(flags.args !== undefined && { Args: flags.args.split(/\s+/).filter((word) => word !== '') }),
        },
      },
    };
    const headers = flags['with-registry-auth'] ? await authHeader(body.TaskTemplate.ContainerSpec.Image) : {};
    const query = flags.rollback ? { rollback: 'previous' } : {};
    await cluster.updateService(connection, service, body, { headers, query });
    console.log(ref);
  },
});

export const rollbackService = command({
  words: 'SERVICE',
  count: [1, 1],
  flags: { detach: { kind: 'boolean', short: 'd', help: 'As it is always: nothing is waited for' } },
  offers: 'service',
  run: async ({ connection }, [ref = '']) => {
    const service = await cluster.inspectService(connection, ref);
    await cluster.updateService(connection, service, service.Spec, { query: { rollback: 'previous' } });
    console.log(ref);
  },
});

export const scaleServices = command({
  words: 'SERVICE=REPLICAS [SERVICE=REPLICAS...]',
  count: [1, MANY],
  flags: { detach: { kind: 'boolean', short: 'd', help: 'As it is always: nothing is waited for' } },
  offers: 'service',
  examples: ['gantry service scale web=5'],
  run: async ({ connection }, words) => {
    const wanted = words.map((word) => {
      const [ref, count] = splitOnce(word, '=');
      if (!/^\d+$/.test(count)) throw new UsageError(`invalid scale specifier '${word}': expected SERVICE=REPLICAS`);
      return { ref, count: Number(count) };
    });
    const counts = new Map(wanted.map(({ ref, count }) => [ref, count]));
    await each([...counts.keys()], async (ref) => {
      const service = await cluster.inspectService(connection, ref);
      const { Global, GlobalJob, ReplicatedJob } = service.Spec.Mode ?? {};
      if (Global !== undefined || GlobalJob !== undefined)
        throw new UsageError(`${ref}: only replicated services have a number of tasks`);
      const count = counts.get(ref)!;
      const job = { ReplicatedJob: { ...ReplicatedJob, TotalCompletions: count } };
      const Mode = ReplicatedJob === undefined ? { Replicated: { Replicas: count } } : job;
      await cluster.updateService(connection, service, { ...service.Spec, Mode });
      console.log(`${ref} scaled to ${counts.get(ref)}`);
    });
  },
});

function applyLists(spec: cluster.ServiceSpec, flags: Given<typeof LISTS>): cluster.ServiceSpec {
  const { ContainerSpec: container, Placement } = spec.TaskTemplate;
  const added = publishedPorts(flags['publish-add']);
  const kept = (spec.EndpointSpec?.Ports ?? []).filter(
    ({ TargetPort, Protocol }) =>
      !flags['publish-rm'].includes(String(TargetPort)) &&
      !added.some((port) => port.TargetPort === TargetPort && port.Protocol === Protocol),
  );
  const ports = [...kept, ...added];
  const constraints = (Placement?.Constraints ?? []).filter((text) => !flags['constraint-rm'].includes(text));
  const mounts = mountsOf(flags['mount-add']);
  const targets = [...flags['mount-rm'], ...mounts.map(({ Target }) => Target)];
  return {
    ...spec,
    Labels: changedMap(spec.Labels, flags['label-add'], flags['label-rm']),
    ...((ports.length > 0 || spec.EndpointSpec !== undefined) && {
      EndpointSpec: { ...spec.EndpointSpec, Ports: ports },
    }),
    TaskTemplate: {
      ...spec.TaskTemplate,
      Placement: { Constraints: [...constraints, ...flags['constraint-add']] },
      ContainerSpec: {
        ...container,
        Labels: changedMap(container.Labels, flags['container-label-add'], flags['container-label-rm']),
        Env: changedEnv(container.Env ?? [], variables(flags['env-add']), flags['env-rm']),
        Mounts: [...(container.Mounts ?? []).filter(({ Target }) => !targets.includes(Target)), ...mounts],
      },
    },
  };
}

async function changeSecrets(
  engine: Context['connection'],
  container: cluster.ContainerSpec,
  flags: Given<typeof LISTS>,
): Promise<cluster.ContainerSpec> {
  const secrets = (container.Secrets ?? []).filter(({ SecretName }) => !flags['secret-rm'].includes(SecretName));
  const configs = (container.Configs ?? []).filter(({ ConfigName }) => !flags['config-rm'].includes(ConfigName));
  return {
    ...container,
    Secrets: [...secrets, ...(await secretReferences(engine, flags['secret-add']))],
    Configs: [...configs, ...(await configReferences(engine, flags['config-add']))],
  };
}

function changedMap(
  before: Readonly<Record<string, string>> | undefined,
  added: readonly string[],
  removed: readonly string[],
): Record<string, string> {
  const kept = Object.entries(before ?? {}).filter(([name]) => !removed.includes(name));
  return { ...Object.fromEntries(kept), ...mapOf(added) };
}

function changedEnv(before: readonly string[], added: readonly string[], removed: readonly string[]): string[] {
  const gone = new Set([...removed, ...added.map(nameOf)]);
  return [...before.filter((word) => !gone.has(nameOf(word))), ...added];
}

function nameOf(word: string): string {
  return splitOnce(word, '=')[0];
}
