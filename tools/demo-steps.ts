const steps: { name: string; milliseconds: number }[] = [];

/** One part of a demo, with its name above what it says, and its time for `printTimes`. */
export async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
  console.log(`\n== ${name}`);
  const started = performance.now();
  const result = await work();
  steps.push({ name, milliseconds: performance.now() - started });
  return result;
}

export function say(line: string): void {
  console.log(`   ${line}`);
}

export function printTimes(): void {
  console.log('\nHow long each step took:');
  for (const { name, milliseconds } of steps) console.log(`  ${milliseconds.toFixed(0).padStart(5)} ms  ${name}`);
}
