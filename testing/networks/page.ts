import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** GET of a URL, which has so many tries to be answered. busybox wget ends with SIGSEGV at addresses of IPv6. */
const GET = `
const [url, tries] = process.argv.slice(1);
(async () => {
  for (let n = 0; n < Number(tries); n += 1) {
    try {
      return (await (await fetch(url, { signal: AbortSignal.timeout(3000) })).text()).trim();
    } catch {
      await new Promise((done) => setTimeout(done, 100));
    }
  }
  return 'nobody';
})().then((text) => process.stdout.write(text, () => process.exit()));`;

/** GET of a URL, asked in the network namespace of a process; `tries` until somebody answers. */
export async function page(pid: number, url: string, tries = 600): Promise<string> {
  return (await execute('nsenter', ['-t', String(pid), '-n', ...pageCommand(url, tries)])).stdout;
}

/** Like `page`, as a command. Prints `nobody` without an answer. */
export function pageCommand(url: string, tries = 600): string[] {
  return [process.execPath, '-e', GET, url, String(tries)];
}
