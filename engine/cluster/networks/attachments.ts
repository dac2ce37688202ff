import type { Unattached, WantedAttachment } from '../../networks/overlay/attachment.ts';
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
    const before = draft.get('attachment', one.id);
    if (before !== undefined) {
      if (before.name !== one.name) draft.put('attachment', { ...before, name: one.name, updatedAt: now.toString() });
      return [];
    }
    const network = networkOf(draft, one.network);
    const refusal = refusalOf(network);
    if (network === undefined || refusal !== undefined) return [{ id: one.id, ...refusal! }];
    const { id, name, aliases, ip } = one;
    const at = now.toString();
    const dates = { createdAt: at, updatedAt: at };
    const own = { node, network: network.id, name, aliases: [...aliases], address: '' };
    draft.put('attachment', { ...dates, id, ...own, ...(ip !== undefined && { ip }) });
    return [];
  });
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

function refusalOf(network: NetworkRecord | undefined): Omit<Unattached, 'id'> | undefined {
  if (network === undefined) return { kind: 'notFound', reason: 'rpc error: code = NotFound desc = network not found' };
  if (network.attachable === true) return undefined;
  const reason = `rpc error: code = PermissionDenied desc = network ${network.name} not manually attachable`;
  return { kind: 'forbidden', reason };
}
