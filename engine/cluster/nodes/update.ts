import { EngineError, refuseIf } from '../../lib/errors.ts';
import { isWithin, MAX_RECORD_BYTES } from '../../lib/notations/field-schemas.ts';
import type { WriteArguments } from '../leader/write-schemas.ts';
import { refuseOldVersion, type Draft } from '../state/draft.ts';
import type { NodeRecord } from '../state/records.ts';
import { findNode } from './find.ts';
import type { NodeSpecBody } from './schema.ts';

/** The specification that replaces a node's; role and availability cannot be left out. */
export function readNodeSpec({ Name = '', Role = '', Availability = '', Labels }: NodeSpecBody): NodeRecord['spec'] {
  refuseIf(!isWithin(MAX_RECORD_BYTES, [Name, Labels]), 'the specification of a node is 512 KB at most');
  if (Role !== 'worker' && Role !== 'manager') throw new EngineError('invalid', `invalid Role: "${Role}"`);
  if (Availability !== 'active' && Availability !== 'pause' && Availability !== 'drain') {
    throw new EngineError('invalid', `invalid Availability: "${Availability}"`);
  }
  return { name: Name, labels: Labels ?? {}, role: Role, availability: Availability };
}

/** POST /nodes/{id}/update. A new role takes effect later. */
export function updateNode(
  draft: Draft,
  { ref, version, spec }: WriteArguments<'updateNode'>,
  now: Temporal.Instant,
): void {
  const node = findNode(draft, ref);
  refuseOldVersion(node, version);
  if (node.spec.role === 'manager' && spec.role === 'worker') refuseDemotion(draft, node);
  draft.put('node', { ...node, spec, updatedAt: now.toString() });
}

/** A manager has to remain, and enough of them that are up. */
function refuseDemotion(draft: Draft, node: NodeRecord): void {
  const managers = [...draft.all('node')].filter(({ id, spec }) => id !== node.id && spec.role === 'manager');
  const start = 'rpc error: code = FailedPrecondition desc =';
  if (managers.length === 0)
    throw new EngineError('failed', `${start} attempting to demote the last manager of the swarm`);
  const there = managers.filter(({ status, manager }) => manager !== undefined && status.state === 'ready').length;
  if (there <= Math.floor(managers.filter(({ manager }) => manager !== undefined).length / 2)) {
    throw new EngineError(
      'failed',
      `${start} can't remove member from the raft: this would result in a loss of quorum`,
    );
  }
}
