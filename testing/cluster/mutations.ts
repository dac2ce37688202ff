/** Fields that take any value: another check follows. */
const ANY =
  /^(?:WriteRequest \/args|WriteAnswer \/result|FromLeader \/news\/members(?:\/0)?|FromLeader \/templates\/t(?:\/.*)?)$/;
/** Fields that take null, and numbers below 0. */
const NULLABLE = /^Refusal \/leader$/;
const SIGNED = /\/(?:exitCode|stopGracePeriodNs|taskHistoryRetentionLimit|version)$/;

type Container = Record<string, unknown>;
/** The JSON of a mutated message; `mustFail` where no reader may take it. */
type Mutation = Readonly<{ name: string; text: string; mustFail: boolean }>;

const LONG = 'x'.repeat(5 * 1024);
const DEEP = `${'['.repeat(200)}${']'.repeat(200)}`;
const FURTHER = {
  unknown: '"unknown":1',
  __proto: '"__proto__":{"polluted":true}',
  constructor: '"constructor":{"prototype":{"polluted":true}}',
};

/** Every field of a message, with the object or list that has it. */
function* fieldsIn(value: unknown, place = ''): Generator<[place: string, parent: Container, key: string]> {
  if (typeof value !== 'object' || value === null) return;
  for (const key of Object.keys(value)) {
    yield [`${place}/${key}`, value as Container, key];
    yield* fieldsIn((value as Container)[key], `${place}/${key}`);
  }
}

/** Messages that differ from a good one in one place: `title` names its schema. */
export function* mutationsOf(title: string, sample: object): Generator<Mutation> {
  const copy = structuredClone(sample);
  for (const [place, parent, key] of fieldsIn(copy)) {
    const field = `${title} ${place}`;
    const old = parent[key];
    const isAny = ANY.test(field);
    const values: readonly (readonly [name: string, value: unknown, mustFail: boolean])[] = [
      ['null', null, !isAny && !NULLABLE.test(field)],
      ['of another type', typeof old === 'string' ? 7 : 'x7', !isAny],
      ['a list', [['x']], !isAny],
      ['-1', -1, !isAny && !(typeof old === 'number' && SIGNED.test(place))],
      ['1e308', 1e308, !isAny && !place.endsWith('/version')],
      ['NaN', 'NaN', !isAny && typeof old !== 'string'],
      ['Infinity', '-Infinity', !isAny && typeof old !== 'string'],
      ['5 KB', LONG, !isAny && typeof old !== 'string'],
      ['missing', undefined, false],
    ];
    for (const [name, value, mustFail] of values) {
      parent[key] = value;
      yield { name: `${field}: ${name}`, text: JSON.stringify(copy), mustFail };
    }
    parent[key] = old;
  }
  const text = JSON.stringify(sample);
  for (const [name, further] of Object.entries(FURTHER)) {
    yield {
      name: `${title}: ${name}`,
      text: text.replace('{', `{${further}${text === '{}' ? '' : ','}`),
      mustFail: false,
    };
  }
  yield {
    name: `${title}: nested`,
    text: text.replace('{', `{"n":${DEEP}${text === '{}' ? '' : ','}`),
    mustFail: true,
  };
  for (const other of ['null', '7', '[]', '""']) yield { name: `${title}: ${other}`, text: other, mustFail: true };
}
