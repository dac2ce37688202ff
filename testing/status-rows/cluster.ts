import { OF_MEMBERS, type Case, type Extra, type StatusRows } from './row.ts';

/** This daemon is a member of no cluster; what members answer is asked in `engine/cluster`. */
const outside = (path: string, extra?: Extra): Case => [
  406,
  'the node is in no cluster',
  path,
  { ...extra, newer: 503 },
];
const bad = (path: string, extra: Extra): Case => [400, 'a parameter is bad', path, extra];

const NO_CLUSTER = {
  ...{ 200: OF_MEMBERS, 201: OF_MEMBERS, 400: OF_MEMBERS },
  ...{ 403: OF_MEMBERS, 404: OF_MEMBERS, 406: OF_MEMBERS, 409: OF_MEMBERS },
};

export const clusterRows = {
  'GET /nodes': { statuses: [200, 406, 500], never: NO_CLUSTER, cases: [outside('/nodes')] },
  'GET /nodes/{id}': {
    statuses: [200, 404, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/nodes/self')],
  },
  'DELETE /nodes/{id}': {
    statuses: [200, 404, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/nodes/self?force=1')],
  },
  'POST /nodes/{id}/update': {
    statuses: [200, 404, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/nodes/self/update?version=1', { body: {} }), bad('/nodes/self/update', { body: {} })],
  },
  'GET /swarm': { statuses: [200, 406, 500], never: NO_CLUSTER, cases: [outside('/swarm')] },
  'POST /swarm/init': {
    statuses: [200, 400, 406, 500],
    never: NO_CLUSTER,
    cases: [bad('/swarm/init', { body: { ListenAddr: 'nowhere' } })],
  },
  'POST /swarm/join': {
    statuses: [200, 400, 406, 500],
    never: NO_CLUSTER,
    cases: [bad('/swarm/join', { body: { ListenAddr: '127.0.0.1', RemoteAddrs: ['127.0.0.1'], JoinToken: 'x' } })],
  },
  'POST /swarm/leave': {
    statuses: [200, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/swarm/leave?force=1')],
  },
  'POST /swarm/update': {
    statuses: [200, 400, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/swarm/update?version=1', { body: {} }), bad('/swarm/update?version=x', { body: {} })],
  },
  'GET /services': { statuses: [200, 406, 500], never: NO_CLUSTER, cases: [outside('/services')] },
  'POST /services/create': {
    statuses: [201, 403, 406, 409, 500],
    never: NO_CLUSTER,
    cases: [outside('/services/create', { body: { Name: 'web' } })],
  },
  'GET /services/{id}': {
    statuses: [200, 404, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/services/web')],
  },
  'DELETE /services/{id}': {
    statuses: [200, 404, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/services/web')],
  },
  'POST /services/{id}/update': {
    statuses: [200, 404, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/services/web/update?version=1', { body: {} })],
  },
  'GET /tasks': { statuses: [200, 406, 500], never: NO_CLUSTER, cases: [outside('/tasks')] },
  'GET /tasks/{id}': {
    statuses: [200, 404, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/tasks/one')],
  },
} as const satisfies StatusRows;
