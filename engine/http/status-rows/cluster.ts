import { type Case, type Extra, missing, type StatusRows } from './row.ts';

/** This daemon cannot become a member of a cluster yet. */
const outside = (path: string, extra?: Extra): Case => [406, 'the node is in no cluster', path, extra];

const NO_CLUSTER = {
  200: 'there is no cluster yet',
  201: 'there is no cluster yet',
  400: 'there is no cluster yet',
  403: 'there is no cluster yet',
  404: 'there is no cluster yet',
  406: 'there is no cluster yet',
  409: 'there is no cluster yet',
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
    cases: [outside('/nodes/self/update?version=1', { body: {} })],
  },
  'GET /swarm': { statuses: [200, 406, 500], never: NO_CLUSTER, cases: [outside('/swarm')] },
  'POST /swarm/init': {
    statuses: [200, 400, 406, 500],
    never: NO_CLUSTER,
    cases: [missing('/swarm/init', { body: {} })],
  },
  'POST /swarm/join': {
    statuses: [200, 400, 406, 500],
    never: NO_CLUSTER,
    cases: [missing('/swarm/join', { body: {} })],
  },
  'POST /swarm/leave': {
    statuses: [200, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/swarm/leave?force=1')],
  },
  'POST /swarm/update': {
    statuses: [200, 400, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/swarm/update?version=1', { body: {} })],
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
