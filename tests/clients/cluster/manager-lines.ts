import { LINES } from './swarm-lines.ts';

const row = (format: string): string => `--format '${format}'`;
const init = 'swarm init --advertise-addr 127.0.0.1 --listen-addr 127.0.0.1:2377';
const root = row(
  '{{.Swarm.Cluster.RootRotationInProgress}}/{{.Swarm.Cluster.DataPathPort}}/{{json .Swarm.Cluster.Spec}}',
);

/** Lines about managers, their locks, their authority and nodes that API 1.24 does not have, or answers otherwise. */
export const MANAGER_LINES: readonly string[] = [
  'swarm unlock-key',
  'swarm unlock',
  'swarm ca',
  `${init} --data-path-port 80`,
  `${init} --data-path-port 49152`,
  `${init} --data-path-addr nowhere0`,
  `${init} --data-path-addr 127.0.0.1:4789`,
  'swarm join --data-path-addr 0.0.0.0 --advertise-addr 127.0.0.1 --token nonsense 127.0.0.1:2377',
  `${init} --autolock --data-path-port 5000 --data-path-addr lo`,
  'swarm unlock-key',
  'swarm unlock-key -q',
  'swarm unlock-key --rotate',
  'swarm unlock-key --rotate -q',
  'swarm unlock',
  `info ${root}`,
  'swarm update --autolock=false',
  'swarm unlock-key',
  'swarm unlock-key --rotate',
  'swarm update --autolock=true',
  'swarm ca',
  'swarm ca --quiet',
  'swarm ca --cert-expiry 48h',
  'swarm ca --ca-cert {dir}/nosuch',
  'swarm ca --rotate --ca-cert {dir}/nosuch',
  'swarm ca --rotate --ca-key {dir}/file',
  'swarm ca --rotate --ca-cert {dir}/file --ca-key {dir}/file',
  'swarm ca --rotate --external-ca nonsense',
  'swarm ca --rotate --quiet',
  `info ${root}`,
  'swarm ca --rotate --quiet --cert-expiry 48h',
  `info ${root}`,
  'swarm leave --force',
  ...LINES.slice(0, LINES.indexOf('service create')),
  `node ls ${row('{{.Hostname}}/{{.Status}}/{{.Availability}}/{{.ManagerStatus}}/{{.TLSStatus}}/{{.Self}}')}`,
  'node ls --filter node.label=disk=fast -q',
  'node ls --filter membership=accepted -q',
  'swarm leave --force',
];

/** Lines whose answers differ, and why. */
export const CHOSEN_MANAGER_LINES: Readonly<Record<string, string>> = {
  'node ls --filter membership=accepted -q': 'dockerd finds no node by it',
};
