import { EXIT } from './exit-codes.ts';
import { runProgram } from './program.ts';
import { wordsOf } from './words.ts';

// A reader that went away, such as `head`, is no error of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : EXIT.failed));

process.exitCode = await runProgram(wordsOf(process.argv));
