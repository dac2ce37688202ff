/** A command that the kernel ends with this process, however it ends: a killed test or bench leaves no server. */
export function endingWithUs(command: string, args: readonly string[]): [command: string, args: string[]] {
  return ['setpriv', ['--pdeathsig', 'KILL', '--', command, ...args]];
}
