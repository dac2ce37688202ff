/** `annotation.KEY`, `annotation-manifest.KEY`, `annotation-manifest[linux/amd64].KEY`. */
const NAME = /^annotation(?:-([a-z-]+))?(?:\[[^\]]*\])?\.(.+)$/s;

/** The annotations of an output for its manifest, or for another place that they name. */
export function annotationsOf(
  attributes: ReadonlyMap<string, string>,
  place: 'manifest' | 'manifest-descriptor' | 'index',
): Record<string, string> {
  const found: [string, string][] = [];
  for (const [name, value] of attributes) {
    const [, type = 'manifest', key] = NAME.exec(name) ?? [];
    if (key !== undefined && type === place) found.push([key, value]);
  }
  return Object.fromEntries(found);
}
