import type { EngineEvent } from './events.ts';

/**
 * An event as the API has it, as JSON text: `timeNano` does not fit into a JavaScript number. Containers and images
 * carry the older fields too.
 */
export function presentEvent({ type, action, id, attributes, time }: EngineEvent): string {
  const legacy = type === 'container' || type === 'image';
  const fields = {
    ...(legacy && { status: action, id }),
    ...(type === 'container' && { from: attributes.image ?? '' }),
    Type: type,
    Action: action,
    Actor: { ID: id, Attributes: attributes },
    scope: 'local',
    time: Math.floor(time.epochMilliseconds / 1000),
  };
  return `${JSON.stringify(fields).slice(0, -1)},"timeNano":${time.epochNanoseconds}}\n`;
}
