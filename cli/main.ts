import { EXIT } from './exit-codes.ts';
import { runProgram } from './program.ts';
import { wordsOf } from './words.ts';

// A reader that has ended, such as `head`, is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : EXIT.failed));

void main();

async function main(): Promise<void> {
  process.exitCode = await runProgram(wordsOf(process.argv));
}
