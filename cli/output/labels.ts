/** `a=1,b=2`, in the order of the names, as docker's lists show labels. */
export function labelsText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .toSorted()
    .join(',');
}
