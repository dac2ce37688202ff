class Interrupted extends Error {}

let isInterrupted = false;
const steps: { name: string; milliseconds: number }[] = [];

/** Runs a demo. SIGTERM ends it after what it is at, with 130 and nothing left behind. */
export async function play(demo: () => Promise<void>): Promise<void> {
  process.on('SIGTERM', () => {
    if (!isInterrupted) console.log('\nInterrupted: removing what was started.');
    isInterrupted = true;
  });
  // A reader that ends early (`./gantry demo | head`) must not end this process before the daemons.
  process.stdout.on('error', () => undefined);
  try {
    await demo();
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error instanceof SuppressedError ? both(error) : error;
    process.exitCode = 130;
  }
}

/** One part of a demo, with its name above what it says, and its time for `printTimes`. Not begun after an interruption. */
export async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
  goOn();
  console.log(`\n== ${name}`);
  const started = performance.now();
  const result = await work();
  steps.push({ name, milliseconds: performance.now() - started });
  return result;
}

/** Throws what ends the demo when it has been interrupted. */
export function goOn(): void {
  if (isInterrupted) throw new Interrupted();
}

export function say(line: string): void {
  console.log(`   ${line}`);
}

export function printTimes(): void {
  console.log('\nHow long each step took:');
  for (const { name, milliseconds } of steps) console.log(`  ${milliseconds.toFixed(0).padStart(5)} ms  ${name}`);
}

/** A failure, and the one of the clean-up after it: Node shows neither of a suppressed error. */
function both({ error, suppressed }: SuppressedError): AggregateError {
  return new AggregateError([suppressed, error], 'the demo failed, and so did its clean-up');
}
