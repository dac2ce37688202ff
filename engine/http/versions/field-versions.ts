import type { EndpointName } from '../description/endpoints.ts';
import type { ApiVersion } from './api-version.ts';

/** The first version of each field, by its path: `HostConfig.Init`. Fields that are not here are as old as the endpoint. */
type Since = Readonly<Record<string, ApiVersion>>;
export type FieldVersions = Readonly<{ query?: Since; body?: Since; answer?: Since }>;

const SETTINGS: Since = {
  'Healthcheck.StartPeriod': '1.29',
  'Healthcheck.StartInterval': '1.44',
  StopTimeout: '1.25',
};

const HOST_CONFIG: Since = {
  ...{ AutoRemove: '1.25', Mounts: '1.25', NanoCpus: '1.25', Init: '1.25', DeviceCgroupRules: '1.28' },
  ...{ MaskedPaths: '1.38', ReadonlyPaths: '1.38', DeviceRequests: '1.40', KernelMemoryTCP: '1.40' },
  ...{ CgroupnsMode: '1.41', Annotations: '1.43', Umask: '1.55' },
  ...{ 'Mounts.BindOptions.NonRecursive': '1.40', 'Mounts.BindOptions.CreateMountpoint': '1.42' },
  ...{ 'Mounts.BindOptions.ReadOnlyNonRecursive': '1.44', 'Mounts.BindOptions.ReadOnlyForceRecursive': '1.44' },
  ...{ 'Mounts.VolumeOptions.Subpath': '1.45', 'Mounts.TmpfsOptions.Options': '1.46', 'Mounts.ImageOptions': '1.48' },
};

const ENDPOINT: Since = { DriverOpts: '1.32', GwPriority: '1.48' };

const SHOWN_ENDPOINT: Since = { DNSNames: '1.44', GwPriority: '1.44' };

const SERVICE: Since = {
  ...{ RollbackConfig: '1.28', 'UpdateConfig.Order': '1.29', 'RollbackConfig.Order': '1.29' },
  ...{ 'EndpointSpec.Ports.PublishMode': '1.25', 'Mode.ReplicatedJob': '1.41', 'Mode.GlobalJob': '1.41' },
  ...{ 'TaskTemplate.ContainerSpec.Secrets': '1.25', 'TaskTemplate.ContainerSpec.Configs': '1.30' },
  ...below('TaskTemplate.ContainerSpec.Mounts', {
    ...{ 'BindOptions.NonRecursive': '1.40', 'BindOptions.CreateMountpoint': '1.42', 'VolumeOptions.Subpath': '1.45' },
    ...{ 'BindOptions.ReadOnlyNonRecursive': '1.44', 'BindOptions.ReadOnlyForceRecursive': '1.44' },
    ...{ 'TmpfsOptions.Options': '1.46', ImageOptions: '1.48' },
  }),
};

/**
 * Fields that came later than their endpoints. They count at any version: `/v1.xx/openapi.json` alone leaves out those that
 * clients of that version do not know.
 */
export const FIELD_VERSIONS: Readonly<Partial<Record<EndpointName, FieldVersions>>> = {
  'POST /containers/create': {
    query: { platform: '1.41' },
    body: {
      ...SETTINGS,
      ...below('HostConfig', HOST_CONFIG),
      ...below('NetworkingConfig.EndpointsConfig', { ...ENDPOINT, MacAddress: '1.44' }),
    },
  },
  'GET /containers/{id}/json': {
    answer: { ...below('NetworkSettings.Networks', SHOWN_ENDPOINT), ImageManifestDescriptor: '1.48' },
  },
  'GET /containers/json': {
    answer: {
      ...below('NetworkSettings.Networks', SHOWN_ENDPOINT),
      ...{ 'HostConfig.Annotations': '1.46', ImageManifestDescriptor: '1.48', Health: '1.52' },
    },
  },
  'POST /containers/{id}/update': {
    body: {
      ...{ PidsLimit: '1.40', BlkioWeightDevice: '1.55', BlkioDeviceReadBps: '1.55', BlkioDeviceWriteBps: '1.55' },
      ...{ BlkioDeviceReadIOps: '1.55', BlkioDeviceWriteIOps: '1.55' },
    },
  },
  'GET /containers/{id}/logs': { query: { until: '1.35' } },
  'GET /containers/{id}/stats': { query: { 'one-shot': '1.41' }, answer: { os_type: '1.52' } },
  'POST /containers/{id}/stop': { query: { signal: '1.42' } },
  'POST /containers/{id}/restart': { query: { signal: '1.42' } },
  'POST /containers/{id}/wait': { query: { condition: '1.30' } },
  'PUT /containers/{id}/archive': { query: { copyUIDGID: '1.30' } },
  'POST /containers/{id}/exec': { body: { Env: '1.25', WorkingDir: '1.35', ConsoleSize: '1.42' } },
  'POST /exec/{id}/start': { body: { ConsoleSize: '1.42' } },
  'POST /commit': { body: SETTINGS },
  'GET /images/json': {
    query: { 'shared-size': '1.42', manifests: '1.47', identity: '1.54' },
    answer: { Manifests: '1.47', Descriptor: '1.48', 'Manifests.ImageData.Identity': '1.54' },
  },
  'GET /images/{name}/json': {
    query: { manifests: '1.48', platform: '1.49' },
    answer: { Manifests: '1.48', Descriptor: '1.48', Identity: '1.53' },
  },
  'GET /images/{name}/history': { query: { platform: '1.48' } },
  'GET /images/{name}/get': { query: { platform: '1.48' } },
  'GET /images/get': { query: { platform: '1.48' } },
  'POST /images/load': { query: { platform: '1.48' } },
  'POST /images/{name}/push': { query: { platform: '1.46' } },
  'DELETE /images/{name}': { query: { platforms: '1.50' } },
  'POST /images/create': { query: { platform: '1.32' } },
  'POST /build': {
    query: {
      ...{ networkmode: '1.25', cachefrom: '1.25', squash: '1.25', extrahosts: '1.27', target: '1.29' },
      ...{ platform: '1.32', version: '1.38', buildid: '1.39', outputs: '1.40' },
    },
  },
  'POST /build/prune': {
    query: {
      ...{ 'keep-storage': '1.39', all: '1.39', filters: '1.39' },
      ...{ 'reserved-space': '1.48', 'max-used-space': '1.48', 'min-free-space': '1.48' },
    },
  },
  'GET /system/df': {
    query: { type: '1.42', verbose: '1.52' },
    answer: { ImageUsage: '1.52', ContainerUsage: '1.52', VolumeUsage: '1.52', BuildCacheUsage: '1.52' },
  },
  'GET /info': {
    answer: { 'Runtimes.status': '1.44', Containerd: '1.46', FirewallBackend: '1.49', DiscoveredDevices: '1.50' },
  },
  'POST /volumes/create': { body: { ClusterVolumeSpec: '1.42' } },
  'DELETE /volumes/{name}': { query: { force: '1.25' } },
  'GET /plugins': { query: { filters: '1.25' } },
  'POST /plugins/pull': { query: { remote: '1.25' } },
  'GET /services': { query: { status: '1.41' } },
  'GET /networks': { answer: { EnableIPv4: '1.48' } },
  'GET /networks/{id}': { query: { scope: '1.29' }, answer: { EnableIPv4: '1.48', Status: '1.52' } },
  'POST /networks/create': {
    body: {
      ...{ Attachable: '1.25', Ingress: '1.29', ConfigOnly: '1.30', ConfigFrom: '1.30', Scope: '1.30' },
      EnableIPv4: '1.48',
    },
  },
  'POST /networks/{id}/connect': { body: below('EndpointConfig', { ...ENDPOINT, MacAddress: '1.54' }) },
  'POST /services/create': { body: SERVICE },
  'POST /services/{id}/update': { query: { rollback: '1.28' }, body: SERVICE },
};

function below(path: string, fields: Since): Since {
  return Object.fromEntries(Object.entries(fields).map(([name, version]) => [`${path}.${name}`, version]));
}
