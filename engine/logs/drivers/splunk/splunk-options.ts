import { EngineError } from '../../../lib/errors.ts';
import { booleanOption } from '../../boolean-option.ts';
import type { LogOptions } from '../../driver.ts';
import { tlsFiles } from '../../receivers/tls.ts';
import { checkTag } from '../../tag.ts';

const TRUTHS = ['insecureskipverify', 'verify-connection', 'gzip', 'index-acknowledgment'];
const DEFAULT_LEVEL = -1;
const BEST_LEVEL = 9;

/** The checks that dockerd makes when the container starts, in its words. Throws `invalid`. */
export function checkSplunk(options: LogOptions): void {
  collectorUrl(options);
  if (options['splunk-token'] === undefined) throw new EngineError('invalid', 'splunk: splunk-token is expected');
  for (const name of TRUTHS) checkTruth(options[`splunk-${name}`]);
  gzipLevel(options);
  const { 'splunk-format': format = 'inline' } = options;
  if (!['inline', 'json', 'raw'].includes(format)) {
    const problem = `Unknown format specified ${format}, supported formats are inline, json and raw`;
    throw new EngineError('invalid', problem);
  }
  tlsFiles({ ca: options['splunk-capath'] ?? '' });
  checkTag(options['tag']);
}

/** Here an empty text is not a boolean. */
function checkTruth(written: string | undefined): void {
  if (written === '') throw new EngineError('invalid', 'strconv.ParseBool: parsing "": invalid syntax');
  booleanOption(written);
}

export function gzipLevel({ 'splunk-gzip-level': written }: LogOptions): number {
  if (written === undefined) return DEFAULT_LEVEL;
  if (!/^[-+]?\d{1,9}$/.test(written)) {
    throw new EngineError('invalid', `strconv.ParseInt: parsing ${JSON.stringify(written)}: invalid syntax`);
  }
  const level = Number(written);
  if (level >= DEFAULT_LEVEL && level <= BEST_LEVEL) return level;
  const range = `supported values between ${DEFAULT_LEVEL} and ${BEST_LEVEL}`;
  throw new EngineError('invalid', `not supported level '${written}' for splunk-gzip-level (${range})`);
}

/** The URL for events: the option names only the collector's machine. */
export function collectorUrl({ 'splunk-url': written }: LogOptions): string {
  if (written === undefined) throw new EngineError('invalid', 'splunk: splunk-url is expected');
  if (!/^https?:\/\/[^/?#\s]+\/?$/.test(written) || !URL.canParse(written)) {
    throw new EngineError('invalid', 'splunk: expected format scheme://dns_name_or_ip:port for splunk-url');
  }
  return new URL('/services/collector/event/1.0', written).href;
}
