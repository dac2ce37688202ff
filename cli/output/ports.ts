type Port = { IP?: string; PrivatePort: number; PublicPort?: number; Type: string };

/** `80/tcp, 0.0.0.0:90-92->90-92/udp, 0.0.0.0:8080->81/tcp`: as in docker, consecutive ports become ranges. */
export function portsText(ports: readonly Port[]): string {
  const sorted = ports.toSorted(
    (a, b) =>
      a.PrivatePort - b.PrivatePort ||
      compare(a.IP ?? '', b.IP ?? '') ||
      (a.PublicPort ?? 0) - (b.PublicPort ?? 0) ||
      compare(a.Type, b.Type),
  );
  const ranges: { first: Port; last: Port }[] = [];
  for (const port of sorted.filter(keepsNumber)) {
    const range = ranges.find(
      ({ last }) => last.Type === port.Type && last.IP === port.IP && port.PrivatePort === last.PrivatePort + 1,
    );
    if (range === undefined) ranges.push({ first: port, last: port });
    else range.last = port;
  }
  const moved = sorted
    .filter((port) => !keepsNumber(port))
    .map((port) => `${hostOf(port.IP!)}:${port.PublicPort}->${port.PrivatePort}/${port.Type}`);
  return [...ranges.map(({ first, last }) => rangeText(first, last)), ...moved].join(', ');
}

function keepsNumber({ IP, PrivatePort, PublicPort }: Port): boolean {
  return IP === undefined || PublicPort === PrivatePort;
}

function rangeText({ IP, PrivatePort: first, Type }: Port, { PrivatePort: last }: Port): string {
  const numbers = first === last ? String(first) : `${first}-${last}`;
  return IP === undefined ? `${numbers}/${Type}` : `${hostOf(IP)}:${numbers}->${numbers}/${Type}`;
}

function hostOf(ip: string): string {
  return ip.includes(':') ? `[${ip}]` : ip;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
