import { Type } from 'typebox';

export const TasksQuery = Type.Object({
  filters: Type.Optional(
    Type.String({ description: 'JSON map of desired-state, id, label, name, node or service to its values' }),
  ),
});
export const TaskRef = Type.Object({ ref: Type.String({ description: 'Id, name, or unique prefix of an id' }) });
