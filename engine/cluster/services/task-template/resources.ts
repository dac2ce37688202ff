import { refuseIf } from '../../../lib/errors.ts';
import type { GenericResource } from '../../../lib/notations/generic-resources.ts';
import type { Resources, TaskTemplate } from '../../state/task-template.ts';
import { filled, omitEmpty } from '../omit-empty.ts';
import { refuseArgument } from '../refuse-argument.ts';
import type { ResourcesBody } from './schema.ts';

const LEAST_NANO_CPUS = 1e6;
const LEAST_MEMORY = 4 * 1024 * 1024;

type TaskResources = NonNullable<TaskTemplate['resources']>;
type Amounts = NonNullable<ResourcesBody['Limits']>;
type GenericBody = NonNullable<NonNullable<ResourcesBody['Reservations']>['GenericResources']>[number];

export function readResources({ Limits, Reservations, SwapBytes, MemorySwappiness }: ResourcesBody): TaskResources {
  const generic = Reservations?.GenericResources?.map(readGeneric);
  const swappiness = MemorySwappiness ?? undefined;
  refuseArgument(
    swappiness !== undefined && (swappiness < -1 || swappiness > 100),
    `invalid MemorySwappiness: ${swappiness}: Must be between 0 and 100, or -1`,
  );
  refuseArgument(
    SwapBytes !== undefined && SwapBytes !== null && SwapBytes < -1,
    `invalid SwapBytes: ${SwapBytes}: Must be at least 0, or -1`,
  );
  return omitEmpty({
    limits: Limits && { ...readAmounts(Limits), ...(Limits.Pids ? { pids: Limits.Pids } : {}) },
    reservations: Reservations && {
      ...readAmounts(Reservations),
      ...(generic !== undefined && generic.length > 0 ? { generic } : {}),
    },
    swapBytes: SwapBytes,
    memorySwappiness: swappiness,
  });
}

/** The specification calls the field NanoCPU, its samples and all clients NanoCPUs. */
function readAmounts({ NanoCPUs, NanoCPU, MemoryBytes = 0 }: Amounts): Partial<Resources> {
  const nanoCpus = NanoCPUs ?? NanoCPU ?? 0;
  refuseArgument(
    nanoCpus !== 0 && nanoCpus < LEAST_NANO_CPUS,
    `invalid cpu value ${goNumber(nanoCpus / 1e9)}: Must be at least 0.001`,
  );
  refuseArgument(
    MemoryBytes !== 0 && MemoryBytes < LEAST_MEMORY,
    `invalid memory value ${MemoryBytes}: Must be at least 4MiB`,
  );
  return { ...(nanoCpus === 0 ? {} : { nanoCpus }), ...(MemoryBytes === 0 ? {} : { memoryBytes: MemoryBytes }) };
}

function readGeneric({ DiscreteResourceSpec: amount, NamedResourceSpec: name }: GenericBody): GenericResource {
  refuseIf(!amount === !name, 'invalid generic resource: it has either a DiscreteResourceSpec or a NamedResourceSpec');
  if (name) return { kind: name.Kind ?? '', name: name.Value ?? '' };
  const { Kind = '', Value = 0 } = amount!;
  refuseArgument(Value < 0, `invalid generic resource ${Kind}: its amount must not be negative`);
  return { kind: Kind, amount: Value };
}

export function presentResources(resources: TaskResources): object {
  const { limits, reservations, swapBytes, memorySwappiness } = resources;
  return omitEmpty({
    Limits: limits && { ...presentAmounts(limits), ...filled({ Pids: limits.pids }) },
    Reservations: reservations && {
      ...presentAmounts(reservations),
      ...filled({ GenericResources: reservations.generic?.map(presentGeneric) }),
    },
    SwapBytes: swapBytes,
    MemorySwappiness: memorySwappiness,
  });
}

function presentAmounts(amounts: Partial<Resources>): object {
  return omitEmpty({ NanoCPUs: amounts.nanoCpus, MemoryBytes: amounts.memoryBytes });
}

export function presentGeneric(resource: GenericResource): object {
  const { kind: Kind } = resource;
  return 'amount' in resource
    ? { DiscreteResourceSpec: filled({ Kind, Value: resource.amount }) }
    : { NamedResourceSpec: { Kind, Value: resource.name } };
}

/** As Go's `%g` writes it: two digits of an exponent at least. */
function goNumber(value: number): string {
  return String(value).replace(/e([+-])(\d)$/, 'e$10$2');
}
