import { type Case } from './row.ts';

/** Requests to no endpoint, which are refused in the same form. */
export const OUTSIDE_OF_ENDPOINTS: readonly (readonly ['GET' | 'POST' | 'PUT', ...Case])[] = [
  ['GET', 404, 'no such path', '/nope'],
  ['GET', 404, 'no such path below a container', '/containers/running/nope'],
  ['GET', 400, 'a path of newer clients', '/system/df'],
  ['GET', 404, 'a path of newer clients', '/plugins/x/json'],
  ['GET', 400, 'a path of newer clients', '/distribution/busybox/json'],
  ['POST', 400, 'a path of newer clients', '/session'],
  ['POST', 400, 'a path of newer clients', '/grpc'],
  ['PUT', 404, 'a method that the path does not have', '/containers/json'],
  ['GET', 400, 'a version that is too new', '/v1.25/info'],
  ['GET', 400, 'a version that is too old', '/v1.11/info'],
  ['GET', 404, 'an error for a client from before 1.24', '/v1.23/containers/nope/json', { type: 'text/plain' }],
  ['GET', 400, 'an invalid version', '/v2/info'],
  ['GET', 400, 'a name that cannot be decoded', '/containers/%E0%A4%A/json'],
];
