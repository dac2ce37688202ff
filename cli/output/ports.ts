type Port = { IP?: string; PrivatePort: number; PublicPort?: number; Type: string };

/** `0.0.0.0:8080->80/tcp, 90/udp`; ports one after another are one range. */
export function portsText(ports: readonly Port[]): string {
  const sorted = ports.toSorted(
    (a, b) =>
      a.Type.localeCompare(b.Type) || a.PrivatePort - b.PrivatePort || (a.PublicPort ?? 0) - (b.PublicPort ?? 0),
  );
  const ranges: { first: Port; last: Port }[] = [];
  for (const port of sorted) {
    const range = ranges.find(({ last }) => follows(last, port));
    if (range === undefined) ranges.push({ first: port, last: port });
    else range.last = port;
  }
  return ranges.map(({ first, last }) => rangeText(first, last)).join(', ');
}

function follows(last: Port, next: Port): boolean {
  if (last.Type !== next.Type || last.IP !== next.IP || next.PrivatePort !== last.PrivatePort + 1) return false;
  if (last.PublicPort === undefined || next.PublicPort === undefined) return last.PublicPort === next.PublicPort;
  return next.PublicPort === last.PublicPort + 1;
}

function rangeText(first: Port, last: Port): string {
  const inside = `${span(first.PrivatePort, last.PrivatePort)}/${first.Type}`;
  if (first.PublicPort === undefined) return inside;
  const ip = first.IP ?? '0.0.0.0';
  return `${ip.includes(':') ? `[${ip}]` : ip}:${span(first.PublicPort, last.PublicPort!)}->${inside}`;
}

function span(from: number, to: number): string {
  return from === to ? String(from) : `${from}-${to}`;
}
