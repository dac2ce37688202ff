/** The longest name of a service or a network of the cluster. */
export const MAX_CLUSTER_NAME_LETTERS = 63;

/** Whether a container may have this name, which has no slash. */
export function isContainerName(text: string): boolean {
  return /^[a-zA-Z0-9_-][a-zA-Z0-9_.-]*$/.test(text);
}

/** Whether a service or a network of the cluster may have this name. Each name matches in one way only, so this is quick. */
export function isClusterName(text: string): boolean {
  return text.length <= MAX_CLUSTER_NAME_LETTERS && /^[a-zA-Z0-9]+(?:[-_]+[a-zA-Z0-9]+)*$/.test(text);
}
