/** The address of a server behind. `prefix`: begins every path there; empty, or with a slash before and none at its end. */
export type UpstreamAddress = Readonly<{ origin: URL; socketPath: string | undefined; prefix: string }>;

const BY_SOCKET = /^unix:(\/[^:?#]+)(?::(\/[^?#]*))?$/;
const BY_URL = /^https?:\/\/[^/?#@]+(?:\/[^?#]*)?$/;

/** `http://host:port`, `https://host:port` or `unix:/path/of.sock`, with `/prefix` or `:/prefix` at the end. Undefined: neither. */
export function upstreamAddress(text: string): UpstreamAddress | undefined {
  const socket = BY_SOCKET.exec(text);
  const url = socket === null ? text : `http://localhost${socket[2] ?? ''}`;
  if ((socket === null && !BY_URL.test(text)) || !URL.canParse(url)) return undefined;
  const { origin, pathname } = new URL(url);
  return { origin: new URL(origin), socketPath: socket?.[1], prefix: pathname.replace(/\/+$/, '') };
}

export function upstreamAddresses(upstream: string | readonly string[]): UpstreamAddress[] {
  return [upstream].flat().map((text) => {
    const address = upstreamAddress(text);
    if (address === undefined) throw new RangeError(`upstream: ${text} is no address of a server`);
    return address;
  });
}
