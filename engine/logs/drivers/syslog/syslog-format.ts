import type { Line } from '../../delivery/line.ts';

/** The fields of every message of a container. */
export type SyslogSource = Readonly<{ facility: number; hostname: string; tag: string; pid: number; timeZone: string }>;

/** The head of a message, up to the line itself. */
export type SyslogHead = (source: SyslogSource, line: Line) => string;

const INFO = 6;
const ERROR = 3;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The values of `syslog-format`; the empty one is what local daemons of syslog expect, without a host name. */
export const SYSLOG_FORMATS: ReadonlyMap<string, SyslogHead> = new Map<string, SyslogHead>([
  ['', (source, line) => `<${priority(source, line)}>${stamp(source, line)} ${source.tag}[${source.pid}]: `],
  [
    'rfc3164',
    (source, line) =>
      `<${priority(source, line)}>${stamp(source, line)} ${source.hostname} ${source.tag}[${source.pid}]: `,
  ],
  ['rfc5424', (source, line) => head5424(source, line, 0)],
  ['rfc5424micro', (source, line) => head5424(source, line, 6)],
]);

/** The tag is both the name of the program and the kind of message, as in docker. */
function head5424(source: SyslogSource, line: Line, digits: 0 | 6): string {
  const { hostname, tag, pid } = source;
  const time = timeInZone(source, line).toString({ fractionalSecondDigits: digits, timeZoneName: 'never' });
  return `<${priority(source, line)}>1 ${time.replace(/\+00:00$/, 'Z')} ${hostname} ${tag} ${pid} ${tag} - `;
}

function priority({ facility }: SyslogSource, { source }: Line): number {
  return facility * 8 + (source === 'stderr' ? ERROR : INFO);
}

/** `Jan 2 15:04:05`, in local time. */
function stamp(source: SyslogSource, line: Line): string {
  const time = timeInZone(source, line);
  const clock = [time.hour, time.minute, time.second].map((number) => String(number).padStart(2, '0')).join(':');
  return `${MONTHS[time.month - 1]} ${String(time.day).padStart(2)} ${clock}`;
}

function timeInZone({ timeZone }: SyslogSource, { time }: Line): Temporal.ZonedDateTime {
  return time.toZonedDateTimeISO(timeZone);
}
