import { EngineError } from '../../lib/errors.ts';
import { dropAttachments } from '../networks/attachments.ts';
import type { Draft } from '../state/draft.ts';
import { findNode } from './find.ts';

/** DELETE /nodes/{id}: revokes its certificate. A node that is up has to leave first, or `force` is needed. */
export function removeNode(draft: Draft, args: unknown): void {
  const { ref, force } = args as { ref: unknown; force: unknown };
  if (typeof ref !== 'string') throw new EngineError('invalid', 'the removal is not understood');
  const node = findNode(draft, ref);
  const start = 'rpc error: code = FailedPrecondition desc =';
  if (node.manager !== undefined || node.spec.role === 'manager') {
    throw new EngineError(
      'failed',
      `${start} node ${node.id} is a cluster manager and is a member of the raft cluster. It must be demoted to worker before removal`,
    );
  }
  if (force !== true && node.status.state !== 'down') {
    throw new EngineError('failed', `${start} node ${node.id} is not down and can't be removed`);
  }
  dropAttachments(draft, node.id);
  draft.delete('node', node.id);
}
