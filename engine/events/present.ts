import { scopeOf, type EngineEvent } from './events.ts';

/** An event as the API has it, as JSON text: `timeNano` does not fit into a JavaScript number. */
export function presentEvent(
  { type, action, id, attributes, time }: EngineEvent,
  { hasOldFields }: Readonly<{ hasOldFields: boolean }>,
): string {
  const isOld = hasOldFields && (type === 'container' || type === 'image');
  const fields = {
    ...(isOld && { status: action, id }),
    ...(isOld && type === 'container' && { from: attributes.image ?? '' }),
    Type: type,
    Action: action,
    Actor: { ID: id, Attributes: attributes },
    scope: scopeOf(type),
    time: Math.floor(time.epochMilliseconds / 1000),
  };
  return `${JSON.stringify(fields).slice(0, -1)},"timeNano":${time.epochNanoseconds}}\n`;
}
