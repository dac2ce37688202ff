import { EngineError } from '../../../lib/errors.ts';
import { parsePattern } from '../../../lib/notations/pattern.ts';
import { booleanOption } from '../../boolean-option.ts';
import type { LogOptions } from '../../driver.ts';
import { checkTag } from '../../tag.ts';
import { deliveringDriver } from '../delivering.ts';
import { multilinePattern } from './awslogs-events.ts';
import { AwslogsSender } from './awslogs-sender.ts';

/** Amazon CloudWatch Logs. */
export const awslogs = deliveringDriver({
  name: 'awslogs',
  options: [
    'awslogs-group',
    'awslogs-stream',
    'awslogs-create-group',
    'awslogs-region',
    'awslogs-endpoint',
    'tag',
    'awslogs-datetime-format',
    'awslogs-multiline-pattern',
    'awslogs-credentials-endpoint',
    'awslogs-force-flush-interval-seconds',
    'awslogs-max-buffered-events',
  ],
  check: checkOptions,
  deliver: async (context) => new AwslogsSender(context),
});

function checkOptions(options: LogOptions): void {
  if ((options['awslogs-group'] ?? '') === '') refuse("must specify a value for log opt 'awslogs-group'");
  checkCreateGroup(options['awslogs-create-group']);
  for (const key of ['awslogs-force-flush-interval-seconds', 'awslogs-max-buffered-events']) {
    const { [key]: written = '' } = options;
    const isPositive = /^\+?\d{1,18}$/.test(written) && Number(written) > 0;
    if (written !== '' && !isPositive) refuse(`must specify a positive integer for log opt '${key}': ${written}`);
  }
  const { 'awslogs-datetime-format': format, 'awslogs-multiline-pattern': multiline } = options;
  if (format !== undefined && multiline !== undefined) {
    refuse("you cannot configure log opt 'awslogs-datetime-format' and 'awslogs-multiline-pattern' at the same time");
  }
  const pattern = multilinePattern(options);
  if (pattern !== '' && parsePattern(pattern) === undefined) {
    refuse(`awslogs could not parse multiline pattern key ${JSON.stringify(pattern)}`);
  }
  checkTag(options['tag']);
}

function checkCreateGroup(written: string | undefined): void {
  try {
    booleanOption(written);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    refuse(`must specify valid value for log opt 'awslogs-create-group': ${reason}`);
  }
}

function refuse(reason: string): never {
  throw new EngineError('invalid', reason);
}
