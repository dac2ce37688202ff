const NAMES: ReadonlyMap<string, string> = new Map(Object.entries({ x64: 'amd64', ia32: '386' }));

/** This machine's architecture under Go's name, which image configurations use. */
export function goArchitecture(): string {
  return NAMES.get(process.arch) ?? process.arch;
}
