import { parseIp } from '../../lib/notations/ip-address.ts';
import { isContainerName } from '../../lib/notations/names.ts';
import { usableAliases, type Unattached, type WantedAttachment } from '../../networks/overlay/members/attachment.ts';
import type { Draft } from '../state/draft.ts';
import type { NetworkRecord } from '../state/records.ts';

const SHORT_ID = 12;

/**
 * Makes the containers of a node in attachable networks what the node says: it says all of them. Returns those that are
 * refused; the reasons have dockerd's words.
 */
export function storeAttachments(
  draft: Draft,
  node: string,
  wanted: readonly WantedAttachment[],
  now: Temporal.Instant,
): Unattached[] {
  const ids = new Set(wanted.map(({ id }) => id));
  for (const { id } of attachmentsOf(draft, node)) if (!ids.has(id)) draft.delete('attachment', id);
  if (draft.get('node', node) === undefined) return [];
  return wanted.flatMap((one) => {
    const refusal = store(draft, node, one, now.toString());
    return refusal === undefined ? [] : [{ id: one.id, ...refusal }];
  });
}

type Refusal = Omit<Unattached, 'id'>;

/** Stores a container, or its new name. Returns the reason where it is refused. */
function store(
  draft: Draft,
  node: string,
  { id, network: ref, name, aliases, ip }: WantedAttachment,
  at: string,
): Refusal | undefined {
  const fault = faultOf({ name, ip });
  if (fault !== undefined) return { kind: 'failed', reason: fault };
  const before = draft.get('attachment', id);
  if (before !== undefined) {
    if (before.node !== node) return { kind: 'failed', reason: 'another node has a container of this id' };
    if (before.name !== name) draft.put('attachment', { ...before, name, updatedAt: at });
    return undefined;
  }
  const network = networkOf(draft, ref);
  if (network?.attachable !== true) return networkRefusal(network);
  const dates = { createdAt: at, updatedAt: at };
  const own = { node, network: network.id, name, aliases: usableAliases(aliases), address: '' };
  draft.put('attachment', { ...dates, id, ...own, ...(ip !== undefined && { ip }) });
  return undefined;
}

/** The API's rules: a worker may be of another mind. */
function faultOf({ name, ip }: Pick<WantedAttachment, 'name' | 'ip'>): string | undefined {
  if (!isContainerName(name)) return 'invalid container name: only [a-zA-Z0-9_-][a-zA-Z0-9_.-]* are allowed';
  return ip === undefined || parseIp(ip)?.family === 4 ? undefined : 'invalid IPv4 address';
}

/** The node is gone, and its containers with it. */
export function dropAttachments(draft: Draft, node: string): void {
  for (const { id } of attachmentsOf(draft, node)) draft.delete('attachment', id);
}

function attachmentsOf(draft: Draft, node: string): { id: string }[] {
  return [...draft.all('attachment')].filter((one) => one.node === node);
}

/** By its id, its name, or the beginning of its id as clients show it. */
function networkOf(draft: Draft, ref: string): NetworkRecord | undefined {
  const isShort = ref.length >= SHORT_ID;
  return (
    draft.get('network', ref) ??
    draft.all('network').find(({ name }) => name === ref) ??
    draft.all('network').find(({ id }) => isShort && id.startsWith(ref))
  );
}

function networkRefusal(network: NetworkRecord | undefined): Refusal {
  if (network === undefined) return { kind: 'notFound', reason: 'rpc error: code = NotFound desc = network not found' };
  const reason = `rpc error: code = PermissionDenied desc = network ${network.name} not manually attachable`;
  return { kind: 'forbidden', reason };
}
