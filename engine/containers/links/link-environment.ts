/** The data of a link for its environment variables, which begin with `alias`. */
type LinkedContainer = Readonly<{
  /** The name of the container that has the link. */
  name: string;
  alias: string;
  ipAddress: string;
  /** Exposed ports of the linked container, such as `80/tcp`. */
  ports: readonly string[];
  environment: readonly string[];
}>;

type Port = Readonly<{ number: number; protocol: string }>;

/** These come from the image, and say nothing about the service. */
const UNTOLD = new Set(['HOME', 'PATH']);

/** The variables of a link, in dockerd's order: the lowest port, runs of ports, each port, the name, its variables. */
export function linkVariables({ name, alias, ipAddress, ports, environment }: LinkedContainer): string[] {
  const prefix = alias.toUpperCase().replaceAll('-', '_');
  const sorted = ports.map(parsePort).toSorted(byNumber);
  const url = ({ number, protocol }: Port): string => `${protocol}://${ipAddress}:${number}`;
  const keyOf = ({ number, protocol }: Port): string => `${prefix}_PORT_${number}_${protocol.toUpperCase()}`;
  const [lowest] = sorted;
  return [
    ...(lowest === undefined ? [] : [`${prefix}_PORT=${url(lowest)}`]),
    ...runsOf(sorted).flatMap(([first, last]) => [
      `${keyOf(first)}_START=${url(first)}`,
      `${keyOf(first)}_ADDR=${ipAddress}`,
      `${keyOf(first)}_PROTO=${first.protocol}`,
      `${keyOf(first)}_PORT_START=${first.number}`,
      `${keyOf({ ...last, number: first.number })}_END=${url(last)}`,
      `${keyOf({ ...last, number: first.number })}_PORT_END=${last.number}`,
    ]),
    ...sorted.flatMap((port) => [
      `${keyOf(port)}=${url(port)}`,
      `${keyOf(port)}_ADDR=${ipAddress}`,
      `${keyOf(port)}_PORT=${port.number}`,
      `${keyOf(port)}_PROTO=${port.protocol}`,
    ]),
    `${prefix}_NAME=/${name}/${alias}`,
    ...environment.flatMap((variable) => {
      const [key = '', ...value] = variable.split('=');
      return value.length === 0 || UNTOLD.has(key) ? [] : [`${prefix}_ENV_${key}=${value.join('=')}`];
    }),
  ];
}

function parsePort(port: string): Port {
  const [number, protocol = 'tcp'] = port.split('/');
  return { number: Number(number), protocol };
}

function byNumber(a: Port, b: Port): number {
  return a.number - b.number || (a.protocol < b.protocol ? -1 : 1);
}

/** First and last of three or more consecutive ports; as in docker, a port of both protocols counts twice. */
function runsOf(sorted: readonly Port[]): [Port, Port][] {
  const runs: [Port, Port][] = [];
  for (let first = 0; first < sorted.length;) {
    let last = first;
    while (last + 1 < sorted.length && sorted[last + 1]!.number <= sorted[first]!.number + (last + 1 - first))
      last += 1;
    if (last > first + 1) runs.push([sorted[first]!, sorted[last]!]);
    first = last > first + 1 ? last + 1 : first + 1;
  }
  return runs;
}
