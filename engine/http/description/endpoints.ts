import type { ApiVersion } from '../versions/api-version.ts';

type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';

type Facts = Readonly<{
  /** Its name for people, as in `… is not implemented yet`. */
  title: string;
  /**
   * The connection becomes the client's stream: if the request asks for an upgrade, or always. Bytes behind such a
   * request are not a second request.
   */
  takesOver?: 'asked' | 'always';
  /** The answer lasts as long as the client stays, so a daemon that ends does not wait for it. */
  lasts?: true;
  /** The name in the path may contain slashes. */
  slashes?: true;
  /** The first version of the API that has it; without one, all served versions. */
  since?: ApiVersion;
  /** Older clients ask for it, and take an object without it for missing: `docker inspect` at 1.24. */
  isAskedBefore?: true;
}>;

/**
 * Every endpoint of the specification, in its order, under the name that it has in docs/compatibility.md; after them
 * those of newer versions of the API, and our own.
 */
const TABLE = {
  'GET /containers/json': { title: 'the list of containers' },
  'POST /containers/create': { title: 'the creation of a container' },
  'GET /containers/{id}/json': { title: 'inspecting a container' },
  'GET /containers/{id}/top': { title: 'the processes of a container' },
  'GET /containers/{id}/logs': { title: 'the log of a container', takesOver: 'asked', lasts: true },
  'GET /containers/{id}/changes': { title: 'the list of the changes of a container' },
  'GET /containers/{id}/export': { title: 'the export of a container' },
  'GET /containers/{id}/stats': { title: 'the statistics of a container', lasts: true },
  'POST /containers/{id}/resize': { title: 'the size of the terminal of a container' },
  'POST /containers/{id}/start': { title: 'the start of a container' },
  'POST /containers/{id}/stop': { title: 'the stop of a container' },
  'POST /containers/{id}/restart': { title: 'the restart of a container' },
  'POST /containers/{id}/kill': { title: 'a signal to a container' },
  'POST /containers/{id}/update': { title: 'the update of a container' },
  'POST /containers/{id}/rename': { title: 'the renaming of a container' },
  'POST /containers/{id}/pause': { title: 'pausing a container' },
  'POST /containers/{id}/unpause': { title: 'resuming a container' },
  'POST /containers/{id}/attach': { title: 'attaching to a container', takesOver: 'always' },
  'GET /containers/{id}/attach/ws': { title: 'attaching to a container by WebSocket', takesOver: 'asked' },
  'POST /containers/{id}/wait': { title: 'waiting for a container', lasts: true },
  'DELETE /containers/{id}': { title: 'the removal of a container', slashes: true },
  'HEAD /containers/{id}/archive': { title: 'copying out of a container' },
  'GET /containers/{id}/archive': { title: 'copying out of a container' },
  'PUT /containers/{id}/archive': { title: 'copying into a container' },
  'POST /containers/{id}/exec': { title: 'the creation of an exec' },
  'POST /exec/{id}/start': { title: 'the start of an exec', takesOver: 'always' },
  'POST /exec/{id}/resize': { title: 'the size of the terminal of an exec' },
  'GET /exec/{id}/json': { title: 'inspecting an exec' },
  'GET /images/json': { title: 'the list of images' },
  'POST /build': { title: 'building images' },
  'POST /images/create': { title: 'pulling and importing images' },
  'GET /images/{name}/json': { title: 'inspecting an image', slashes: true },
  'GET /images/{name}/history': { title: 'the history of an image', slashes: true },
  'POST /images/{name}/push': { title: 'pushing to a registry', slashes: true },
  'POST /images/{name}/tag': { title: 'a new name of an image', slashes: true },
  'DELETE /images/{name}': { title: 'the removal of an image', slashes: true },
  'GET /images/search': { title: 'searching a registry' },
  'GET /images/{name}/get': { title: 'saving an image', slashes: true },
  'GET /images/get': { title: 'saving images' },
  'POST /images/load': { title: 'loading images' },
  'POST /commit': { title: 'the commit of a container' },
  'POST /auth': { title: 'logging in to a registry' },
  'GET /info': { title: 'facts about the system' },
  'GET /version': { title: 'the versions of the engine and its API' },
  'GET /_ping': { title: 'whether the engine is there' },
  'GET /events': { title: 'events', lasts: true },
  'GET /volumes': { title: 'the list of volumes' },
  'POST /volumes/create': { title: 'the creation of a volume' },
  'GET /volumes/{name}': { title: 'inspecting a volume' },
  'DELETE /volumes/{name}': { title: 'the removal of a volume' },
  'GET /networks': { title: 'the list of networks' },
  'GET /networks/{id}': { title: 'inspecting a network' },
  'POST /networks/create': { title: 'the creation of a network' },
  'POST /networks/{id}/connect': { title: 'connecting a container to a network' },
  'POST /networks/{id}/disconnect': { title: 'disconnecting a container from a network' },
  'DELETE /networks/{id}': { title: 'the removal of a network' },
  'GET /plugins': { title: 'the list of plugins' },
  'POST /plugins/pull': { title: 'pulling plugins' },
  'GET /plugins/{name}': { title: 'inspecting plugins', slashes: true },
  'POST /plugins/{name}/enable': { title: 'enabling plugins', slashes: true },
  'POST /plugins/{name}/disable': { title: 'disabling plugins', slashes: true },
  'DELETE /plugins/{name}': { title: 'removing plugins', slashes: true },
  'GET /nodes': { title: 'the list of nodes' },
  'GET /nodes/{id}': { title: 'inspecting a node' },
  'DELETE /nodes/{id}': { title: 'the removal of a node' },
  'POST /nodes/{id}/update': { title: 'the update of a node' },
  'GET /swarm': { title: 'inspecting the cluster' },
  'POST /swarm/init': { title: 'making a cluster' },
  'POST /swarm/join': { title: 'joining a cluster' },
  'POST /swarm/leave': { title: 'leaving the cluster' },
  'POST /swarm/update': { title: 'the update of the cluster' },
  'GET /services': { title: 'the list of services' },
  'POST /services/create': { title: 'the creation of a service' },
  'GET /services/{id}': { title: 'inspecting a service' },
  'DELETE /services/{id}': { title: 'the removal of a service' },
  'POST /services/{id}/update': { title: 'the update of a service' },
  'GET /tasks': { title: 'the list of tasks' },
  'GET /tasks/{id}': { title: 'inspecting a task' },
  'POST /containers/prune': { title: 'removing unused containers', since: '1.25' },
  'POST /images/prune': { title: 'removing unused images', since: '1.25' },
  'POST /volumes/prune': { title: 'removing unused volumes', since: '1.25' },
  'POST /networks/prune': { title: 'removing unused networks', since: '1.25' },
  'GET /system/df': { title: 'the disk usage', since: '1.25' },
  'GET /distribution/{name}/json': { title: 'an image in its registry', slashes: true, since: '1.30' },
  'POST /build/prune': { title: 'removing caches of builds', since: '1.31' },
  'GET /secrets': { title: 'the list of secrets', since: '1.25' },
  'POST /secrets/create': { title: 'the creation of a secret', since: '1.25' },
  'GET /secrets/{id}': { title: 'inspecting a secret', since: '1.25' },
  'DELETE /secrets/{id}': { title: 'the removal of a secret', since: '1.25' },
  'POST /secrets/{id}/update': { title: 'the update of a secret', since: '1.25' },
  'GET /configs': { title: 'the list of configs', since: '1.30' },
  'POST /configs/create': { title: 'the creation of a config', since: '1.30' },
  'GET /configs/{id}': { title: 'inspecting a config', since: '1.30' },
  'DELETE /configs/{id}': { title: 'the removal of a config', since: '1.30' },
  'POST /configs/{id}/update': { title: 'the update of a config', since: '1.30' },
  'GET /services/{id}/logs': { title: 'the log of a service', since: '1.29' },
  'GET /tasks/{id}/logs': { title: 'the log of a task', since: '1.29' },
  'GET /swarm/unlockkey': { title: 'the key of a locked manager', since: '1.25' },
  'POST /swarm/unlock': { title: 'unlocking a manager', since: '1.25' },
  'GET /plugins/privileges': { title: 'the permissions that a plugin asks for', since: '1.25' },
  'POST /plugins/create': { title: 'the creation of a plugin', since: '1.25' },
  'GET /plugins/{name}/json': { title: 'inspecting a plugin', slashes: true, since: '1.25', isAskedBefore: true },
  'POST /plugins/{name}/push': { title: 'pushing a plugin', slashes: true, since: '1.25' },
  'POST /plugins/{name}/set': { title: 'the settings of a plugin', slashes: true, since: '1.25' },
  'POST /plugins/{name}/upgrade': { title: 'upgrading a plugin', slashes: true, since: '1.26' },
  'POST /build/cancel': { title: 'canceling a build', since: '1.39' },
  'POST /session': { title: 'the session of a build', since: '1.31', takesOver: 'asked', lasts: true },
  'POST /grpc': { title: 'the builder', since: '1.39', takesOver: 'asked', lasts: true },
  'PUT /volumes/{name}': { title: 'the update of a cluster volume', since: '1.42' },
  'GET /images/{name}/attestations': { title: 'the attestations of an image', slashes: true, since: '1.55' },
  'POST /page': { title: 'the page in a browser', since: '1.25' },
  'DELETE /page': { title: 'the page in a browser', since: '1.25' },
  'GET /exec/{id}/ws': { title: 'the start of an exec by WebSocket', since: '1.25', takesOver: 'asked' },
  'GET /containers/stats': { title: 'the usage of all containers', since: '1.25', lasts: true },
  'GET /containers/{id}/files': { title: 'the files in a folder of a container', since: '1.25' },
  'GET /volumes/{name}/files': { title: 'the files in a folder of a volume', since: '1.25' },
  'GET /volumes/{name}/archive': { title: 'files of a volume as an archive', since: '1.25' },
  'GET /containers/{id}/usage': { title: 'the usage of a container in the last hour', since: '1.25' },
} as const satisfies Readonly<Record<`${Method} /${string}`, Facts>>;

export type EndpointName = keyof typeof TABLE;
export type Endpoint = Facts & Readonly<{ name: string; method: Method; path: string }>;

/** The index of the API: the facts about an endpoint that do not need its route. */
export const ENDPOINTS: readonly (Endpoint & { name: EndpointName })[] = Object.entries<Facts>(TABLE).map(
  ([name, facts]) => {
    const [method, path] = name.split(' ') as [Method, string];
    return { ...facts, name: name as EndpointName, method, path };
  },
);

/** The path as the router writes it: `/exec/:id/start`. */
export function routerPath({ path }: Endpoint): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}

/** The endpoint of a route, regardless of the names of its parameters. A HEAD without a row counts as its GET. */
export function endpointOf(
  endpoints: readonly Endpoint[],
  route: Readonly<{ method: Method; url: string }>,
): Endpoint | undefined {
  const shape = route.url.replaceAll(/:\w+/g, '{}');
  const alike = endpoints.filter(({ path }) => path.replaceAll(/\{\w+\}/g, '{}') === shape);
  const exact = alike.find(({ method }) => method === route.method);
  return exact ?? (route.method === 'HEAD' ? alike.find(({ method }) => method === 'GET') : undefined);
}
