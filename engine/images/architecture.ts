const NAMES: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

/** This machine's architecture in the words of image configurations, which are Go's. */
export function goArchitecture(): string {
  return NAMES[process.arch] ?? process.arch;
}
