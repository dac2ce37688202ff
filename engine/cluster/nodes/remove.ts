import { EngineError } from '../../lib/errors.ts';
import type { WriteArguments } from '../leader/write-schemas.ts';
import { dropAttachments } from '../networks/attachments.ts';
import type { Draft } from '../state/draft.ts';
import { findNode } from './find.ts';

/** DELETE /nodes/{id}: revokes its certificate. A node that is up has to leave first, or `force` is needed. */
export function removeNode(draft: Draft, { ref, force }: WriteArguments<'removeNode'>): void {
  const node = findNode(draft, ref);
  const start = 'rpc error: code = FailedPrecondition desc =';
  if (node.manager !== undefined || node.spec.role === 'manager') {
    throw new EngineError(
      'failed',
      `${start} node ${node.id} is a cluster manager and is a member of the raft cluster. It must be demoted to worker before removal`,
    );
  }
  if (!force && node.status.state !== 'down') {
    throw new EngineError('failed', `${start} node ${node.id} is not down and can't be removed`);
  }
  dropAttachments(draft, node.id);
  draft.delete('node', node.id);
}
