export type Challenge = Readonly<{ scheme: string; parameters: Readonly<Record<string, string>> }>;

const PART = /\s*,?\s*(?:([a-z0-9!#$%&'*+.^_`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))|([a-z0-9-]+)(?=\s|$|,))/iy;

/** The challenges of `WWW-Authenticate`: one header may carry several, and so may several headers. */
export function parseChallenges(header: string | readonly string[] | undefined): Challenge[] {
  const found: { scheme: string; parameters: Record<string, string> }[] = [];
  for (const text of [header ?? []].flat()) {
    PART.lastIndex = 0;
    for (let part = PART.exec(text); part !== null; part = PART.exec(text)) {
      const [, key, quoted, bare, scheme] = part;
      if (scheme !== undefined) found.push({ scheme: scheme.toLowerCase(), parameters: {} });
      else if (key !== undefined) {
        const last = found.at(-1);
        if (last !== undefined) last.parameters[key.toLowerCase()] = quoted?.replaceAll(/\\(.)/g, '$1') ?? bare ?? '';
      }
    }
  }
  return found;
}
