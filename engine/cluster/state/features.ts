import type { TaskMount, TaskTemplate } from './task-template.ts';

/** Parts of tasks that this version knows and earlier ones do not, or ignore. */
export const NODE_FEATURES = ['mounts'] as const;
type Feature = (typeof NODE_FEATURES)[number];

/** Features without which a node would run other tasks than the template describes. */
export function featuresOf({ container }: TaskTemplate): Feature[] {
  return (container.mounts ?? []).some(isLater) ? ['mounts'] : [];
}

function isLater({ type, volume, tmpfs, ...bind }: TaskMount): boolean {
  const { createMountpoint = false, readOnlyNonRecursive = false, readOnlyForceRecursive = false } = bind;
  const isLaterBind = createMountpoint || readOnlyNonRecursive || readOnlyForceRecursive;
  return type === 'image' || volume?.subpath !== undefined || tmpfs?.options !== undefined || isLaterBind;
}
