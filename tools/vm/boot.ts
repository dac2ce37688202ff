import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';

import type { Image } from './image.ts';

type Accelerator = 'kvm' | 'tcg,thread=multi';

const MEMORY = '2G';
/** Without cmpxchg16b, which qemu 7.2 emulates so that kernels of 6.12 crash. */
const EMULATED_CPU = 'max,cx16=off';
const PROBE = 'gantry.probe';
const PROBE_SECONDS = 30;
/** A machine in which nothing is said for so long hangs. */
const SILENCE_SECONDS = 900;

/** Boots and prints what the job prints. Returns its exit code; a machine that ends without one has failed. */
export async function bootMachine(image: Image, disks: readonly string[]): Promise<number> {
  const accelerator = await findAccelerator(image);
  console.log(`booting with ${accelerator === 'kvm' ? 'KVM' : 'software emulation'}`);
  let begun = false;
  let code: number | undefined;
  const seen: string[] = [];
  await runMachine(image, { accelerator, disks: [image.disk, ...disks], silenceSeconds: SILENCE_SECONDS }, (line) => {
    const result = /^@@gantry ends (\d+)$/.exec(line)?.[1];
    if (result !== undefined) code = Number(result);
    // systemd 257 writes marks of its own before the first line.
    else if (line.includes('@@gantry begins')) begun = true;
    else if (begun && code === undefined) console.log(line);
    else seen.push(line);
  });
  if (begun && code !== undefined) return code;
  console.log(`${begun ? '' : seen.slice(-40).join('\n')}\nFAILED: the machine ended without a result`);
  return 1;
}

/** Where /dev/kvm is there it may still not work, so a boot tells; software emulation takes ten times as long. */
async function findAccelerator(image: Image): Promise<Accelerator> {
  if (!existsSync('/dev/kvm')) return 'tcg,thread=multi';
  let alive = false;
  const options = { accelerator: 'kvm', disks: [], silenceSeconds: PROBE_SECONDS, words: PROBE } as const;
  await runMachine(image, options, (line) => (alive ||= line === '@@gantry alive'));
  return alive ? 'kvm' : 'tcg,thread=multi';
}

type Options = Readonly<{
  accelerator: Accelerator;
  /** Nothing that the machine writes stays. */
  disks: readonly string[];
  silenceSeconds: number;
  /** More words for the kernel. */
  words?: string;
}>;

async function runMachine(image: Image, options: Options, onLine: (line: string) => void): Promise<void> {
  const { accelerator, disks, silenceSeconds, words = '' } = options;
  const command = ['--pdeathsig=KILL', 'qemu-system-x86_64', '-accel', accelerator];
  command.push('-cpu', accelerator === 'kvm' ? 'host' : EMULATED_CPU, '-smp', '2', '-m', MEMORY);
  command.push('-nodefaults', '-display', 'none', '-no-reboot', '-serial', 'stdio', '-monitor', 'none');
  command.push('-kernel', image.kernel, '-initrd', image.initramfs);
  command.push(
    '-append',
    `console=ttyS0 quiet no_timer_check cryptomgr.notests panic=-1 systemd.show_status=false ${words}`,
  );
  disks.forEach((file, index) => {
    command.push('-drive', `if=none,id=disk${index},format=raw,snapshot=on,file=${file}`);
    command.push('-device', `virtio-blk-pci,drive=disk${index}`);
  });
  const child = spawn('setpriv', command, { stdio: ['ignore', 'pipe', words === PROBE ? 'ignore' : 'inherit'] });
  const timer = setTimeout(() => child.kill('SIGKILL'), silenceSeconds * 1000);
  const ended = new Promise((resolve) => void child.once('exit', resolve));
  for await (const line of createInterface({ input: child.stdout })) {
    timer.refresh();
    onLine(line.replace(/\r$/, ''));
  }
  clearTimeout(timer);
  await ended;
}
