import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';

import type { Image } from './image.ts';
import { markIn, Results } from './marks.ts';

type Accelerator = 'kvm' | 'tcg,thread=multi';

const MEMORY = '2G';
/**
 * Without cmpxchg16b, which qemu 7.2 emulates so that kernels of 6.12 crash, and without what only costs time where it is
 * emulated: strings that are copied byte by byte, a fifth level of page tables, checks at each access to user memory, and
 * the kernel's care for flaws that no emulated processor has. A process starts in 0.6 (13) or 0.9 (12) of the time, a file
 * is written in 0.5.
 */
const EMULATED = { cpu: 'max,cx16=off,erms=off,fsrm=off,la57=off,smap=off,pku=off', words: 'mitigations=off' };
/** Words for the kernel and systemd in each kind of machine. */
const WORDS = {
  v2: '',
  // systemd takes the first word up to version 256, and needs both from version 257 on.
  v1: 'systemd.unified_cgroup_hierarchy=0 systemd.legacy_systemd_cgroup_controller=1 SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1',
  // The files of the root have no labels, so nothing is enforced, and no refusal is told.
  selinux: 'security=selinux selinux=1 enforcing=0 audit=0',
};
export type Kind = keyof typeof WORDS;
const PROBE = 'gantry.probe';
const PROBE_SECONDS = 30;
/** A machine that is silent for this long hangs. */
const SILENCE_SECONDS = 900;
/** Before 8.1, qemu now and then runs an instruction while another processor replaces it, and the kernel panics. */
const BOOTS = 2;

/** Boots and prints what the job prints, then a table of its parts. False when one failed or has not ended. */
export async function bootMachine(image: Image, disks: readonly string[], kind: Kind): Promise<boolean> {
  const accelerator = await findAccelerator(image);
  console.log(`booting with ${accelerator === 'kvm' ? 'KVM' : 'software emulation'}`);
  const options = {
    ...{ accelerator, disks: [image.disk, ...disks], silenceSeconds: SILENCE_SECONDS },
    words: WORDS[kind],
  };
  for (let boot = 1; ; boot += 1) {
    const job = new Job();
    await runMachine(image, options, (line) => job.take(line));
    if (job.hasBegun || boot === BOOTS) return job.end();
    console.log(`${job.lastOfBoot()}\nthe machine ended before its job: booting again`);
  }
}

/** Follows the job by its lines on the console; readable ones are printed as they come. */
class Job {
  readonly #results = new Results();
  readonly #seenAtBoot: string[] = [];
  hasBegun = false;
  #code: number | undefined;

  take(line: string): void {
    const told = markIn(line);
    if (told === undefined && !this.hasBegun) this.#seenAtBoot.push(line);
    else if (told === undefined) console.log(line);
    else if (told === 'begins') this.hasBegun = true;
    else if (typeof told === 'object' && 'ends' in told) this.#code = told.ends;
    else this.#results.add(told);
  }

  lastOfBoot(): string {
    return this.#seenAtBoot.slice(-40).join('\n');
  }

  /** Prints the table; returns whether all parts have passed. */
  end(): boolean {
    if (!this.hasBegun) console.log(this.lastOfBoot());
    console.log(`\n${this.#results.table()}`);
    if (this.#code === undefined) console.log('FAILED: the machine ended before its job');
    return this.#code === 0 && this.#results.isGood;
  }
}

/** /dev/kvm may exist without working, so a trial boot decides; software emulation takes ten times as long. */
async function findAccelerator(image: Image): Promise<Accelerator> {
  if (!existsSync('/dev/kvm')) return 'tcg,thread=multi';
  let alive = false;
  const options = { accelerator: 'kvm', disks: [], silenceSeconds: PROBE_SECONDS, words: PROBE } as const;
  await runMachine(image, options, (line) => (alive ||= line === '@@gantry alive'));
  return alive ? 'kvm' : 'tcg,thread=multi';
}

type Options = Readonly<{
  accelerator: Accelerator;
  /** The machine's writes are discarded. */
  disks: readonly string[];
  silenceSeconds: number;
  /** More words for the kernel. */
  words: string;
}>;

async function runMachine(image: Image, options: Options, onLine: (line: string) => void): Promise<void> {
  const { accelerator, disks, silenceSeconds, words } = options;
  const command = ['--pdeathsig=KILL', 'qemu-system-x86_64', '-accel', accelerator];
  const isEmulated = accelerator !== 'kvm';
  command.push('-cpu', isEmulated ? EMULATED.cpu : 'host', '-smp', '2', '-m', MEMORY);
  command.push('-nodefaults', '-display', 'none', '-no-reboot', '-serial', 'stdio', '-monitor', 'none');
  command.push('-kernel', image.kernel, '-initrd', image.initramfs);
  const all = ['console=ttyS0 quiet no_timer_check cryptomgr.notests panic=-1 systemd.show_status=false', words];
  command.push('-append', [...all, ...(isEmulated ? [EMULATED.words] : [])].join(' '));
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
