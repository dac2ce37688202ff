import { imageArchive } from '@gantry/testing/busybox-image.ts';

import { contextOf } from '../../build/compared.ts';

/** A request that works, and the query keys or headers of it whose values are exchanged. */
export type Row = readonly [endpoint: string, path: string, query: string, names: string, body?: unknown];

/** Undefined: the key is absent. */
export const QUERY_VALUES = [undefined, '', 'null', '[]', '{}'] as const;

const file = 'FROM busybox\n';
const CONTEXT = contextOf(Object.fromEntries(['Dockerfile', 'null', '[]', '{}'].map((name) => [name, file])));
const TREE = contextOf({ a: 'b' });

/**
 * All query keys of the API. `{fresh}` is a new container, `{running}` a started one, `{tagged}` a new name of an image, `{exec}` a new exec, and
 * nothing listens on port 9.
 */
export const QUERY_ROWS: readonly Row[] = [
  ['GET /containers/json', '/containers/json', '', 'all limit since before size filters'],
  ['POST /containers/create', '/containers/create', '', 'name platform', { Image: 'busybox' }],
  ['GET /containers/{id}/json', '/containers/done/json', '', 'size'],
  ['GET /containers/{id}/top', '/containers/run/top', '', 'ps_args'],
  [
    'GET /containers/{id}/logs',
    '/containers/done/logs',
    'stdout=1',
    'details follow stdout stderr timestamps since until tail',
  ],
  ['GET /containers/{id}/stats', '/containers/run/stats', 'stream=0', 'stream one-shot'],
  ['POST /containers/{id}/resize', '/containers/run/resize', 'h=10&w=10', 'h w'],
  ['POST /containers/{id}/start', '/containers/run/start', '', 'detachKeys'],
  ['POST /containers/{id}/stop', '/containers/done/stop', '', 't'],
  ['POST /containers/{id}/restart', '/containers/done/restart', 't=0', 't'],
  ['POST /containers/{id}/wait', '/containers/done/wait', '', 'condition'],
  ['POST /containers/{id}/kill', '/containers/{running}/kill', 'signal=CONT', 'signal'],
  ['POST /containers/{id}/rename', '/containers/{fresh}/rename', 'name=renamed', 'name'],
  [
    'POST /containers/{id}/attach',
    '/containers/watched/attach',
    'logs=1',
    'detachKeys logs stream stdin stdout stderr',
  ],
  [
    'GET /containers/{id}/attach/ws',
    '/containers/watched/attach/ws',
    'logs=1',
    'detachKeys logs stream stdin stdout stderr',
  ],
  ['DELETE /containers/{id}', '/containers/{fresh}', '', 'v force link'],
  ['HEAD /containers/{id}/archive', '/containers/done/archive', 'path=/etc', 'path'],
  ['GET /containers/{id}/archive', '/containers/done/archive', 'path=/etc', 'path'],
  [
    'PUT /containers/{id}/archive',
    '/containers/done/archive',
    'path=/tmp',
    'path noOverwriteDirNonDir copyUIDGID',
    TREE,
  ],
  ['POST /exec/{id}/resize', '/exec/{exec}/resize', 'h=10&w=10', 'h w'],
  ['GET /images/json', '/images/json', '', 'all filters filter digests'],
  ['POST /images/create', '/images/create', 'fromImage=127.0.0.1:9/x&tag=1', 'fromImage tag platform'],
  ['POST /images/create', '/images/create', 'fromSrc=-', 'fromSrc repo tag message changes', TREE],
  ['POST /images/{name}/push', '/images/127.0.0.1:9/x/push', '', 'tag', {}],
  ['POST /images/{name}/tag', '/images/busybox/tag', 'repo=other&tag=1', 'repo tag force'],
  ['DELETE /images/{name}', '/images/{tagged}', '', 'force noprune'],
  ['GET /images/get', '/images/get', 'names=busybox', 'names'],
  ['POST /images/load', '/images/load', '', 'quiet', imageArchive(TREE, ['loaded:1'])],
  [
    'POST /build',
    '/build',
    '',
    'buildfile dockerfile t remote q nocache pull rm forcerm memory memswap cpushares cpusetcpus cpusetmems cpuperiod cpuquota shmsize buildargs labels target networkmode cachefrom cgroupparent extrahosts ulimits securityopt squash version platform',
    CONTEXT,
  ],
  ['POST /commit', '/commit', 'container=done', 'container repo tag comment author pause changes'],
  ['GET /images/search', '/images/search', 'term=127.0.0.1:9/x', 'term limit filters'],
  ['GET /events', '/events', 'until=1', 'since until filters'],
  ['GET /volumes', '/volumes', '', 'filters'],
  ['DELETE /volumes/{name}', '/volumes/nosuch', '', 'force'],
  ['GET /networks', '/networks', '', 'filters'],
  ['POST /plugins/pull', '/plugins/pull', 'name=127.0.0.1:9/p&remote=127.0.0.1:9/p', 'name', []],
  ['DELETE /plugins/{name}', '/plugins/nosuch', '', 'force'],
  ['POST /plugins/{name}/enable', '/plugins/nosuch/enable', '', 'timeout'],
  ['POST /plugins/{name}/disable', '/plugins/nosuch/disable', '', 'force'],
  ['GET /nodes', '/nodes', '', 'filters'],
  ['DELETE /nodes/{id}', '/nodes/nosuch', '', 'force'],
  ['POST /nodes/{id}/update', '/nodes/nosuch/update', 'version=1', 'version', {}],
  [
    'POST /swarm/update',
    '/swarm/update',
    'version=1',
    'version rotateWorkerToken rotateManagerToken rotateManagerUnlockKey',
    {},
  ],
  ['GET /services', '/services', '', 'filters'],
  ['GET /services/{id}', '/services/served', '', 'insertDefaults'],
  [
    'POST /services/{id}/update',
    '/services/served/update',
    'version=1',
    'version rollback',
    { Name: 'served', TaskTemplate: { ContainerSpec: { Image: 'busybox' } }, Mode: { Replicated: { Replicas: 0 } } },
  ],
  ['GET /tasks', '/tasks', '', 'filters'],
  ['POST /swarm/leave', '/swarm/leave', '', 'force'],
];

const base64 = (text: string): string => Buffer.from(text).toString('base64');
export const HEADER_VALUES = [...QUERY_VALUES, base64('null'), base64('[]'), base64('{}')] as const;
export const HEADER_ROWS: readonly Row[] = [
  ['POST /images/create', '/images/create', 'fromImage=127.0.0.1:9/x&tag=1', 'X-Registry-Auth'],
  ['POST /images/{name}/push', '/images/127.0.0.1:9/x/push', '', 'X-Registry-Auth'],
  ['POST /images/{name}/push', '/images/127.0.0.1:9/x/push', '', 'X-Registry-Auth', {}],
  ['GET /images/search', '/images/search', 'term=127.0.0.1:9/x', 'X-Registry-Auth'],
  ['POST /plugins/pull', '/plugins/pull', 'name=127.0.0.1:9/p&remote=127.0.0.1:9/p', 'X-Registry-Auth', []],
  ['POST /build', '/build', '', 'X-Registry-Config X-Build-Secrets Content-Type', CONTEXT],
  ['PUT /containers/{id}/archive', '/containers/done/archive', 'path=/tmp', 'Content-Type', TREE],
  ['POST /images/load', '/images/load', '', 'Content-Type', imageArchive(TREE, ['loaded:1'])],
  ['POST /containers/create', '/containers/create', '', 'Content-Type', { Image: 'busybox' }],
  ['POST /commit', '/commit', 'container=done', 'Content-Type', {}],
  ['POST /containers/{id}/start', '/containers/run/start', '', 'Content-Type'],
  ['GET /containers/{id}/json', '/containers/run/json', '', 'If-Modified-Since User-Agent Accept'],
];

/** Deliberate differences, with the reason. */
export const CHOSEN: Readonly<Record<string, string>> = {
  ...each('GET /containers/json since=', 'dockerd has given up this key, which has to name a container'),
  ...each('GET /containers/json before=', 'dockerd has given up this key, which has to name a container'),
  ...each('POST /build X-Build-Secrets: ', 'a header of our own', ['null', '[]', '{}', base64('[]')]),
};

function each(beginning: string, reason: string, values = ['null', '[]', '{}']): Record<string, string> {
  return Object.fromEntries(values.map((value) => [beginning + value, reason]));
}
