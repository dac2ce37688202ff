import type { TaskMount, TaskTemplate } from './task-template.ts';

/** Parts of tasks that this version knows and earlier ones do not, or ignore. */
export const NODE_FEATURES = ['mounts', 'hostNetwork'] as const;
type Feature = (typeof NODE_FEATURES)[number];

/** Features without which a node would run other tasks than the template describes. */
export function featuresOf({ container }: TaskTemplate): Feature[] {
  const features: Feature[] = (container.mounts ?? []).some(isLater) ? ['mounts'] : [];
  return container.nodeNetwork === 'host' ? [...features, 'hostNetwork'] : features;
}

function isLater({ type, volume, tmpfs, ...bind }: TaskMount): boolean {
  const { createMountpoint = false, readOnlyNonRecursive = false, readOnlyForceRecursive = false } = bind;
  const isLaterBind = createMountpoint || readOnlyNonRecursive || readOnlyForceRecursive;
  return type === 'image' || volume?.subpath !== undefined || tmpfs?.options !== undefined || isLaterBind;
}
