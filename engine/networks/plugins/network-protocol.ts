import { Type, type Static, type TSchema } from 'typebox';

import { EngineError } from '../../lib/errors.ts';
import { PluginError, type CallLimits, type Capability, type Plugin, type Plugins } from '../../plugins/plugins.ts';

const Text = Type.Optional(Type.String());
const orNull = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

export const Nothing = Type.Object({});
export const Capabilities = Type.Object({ Scope: Type.String(), ConnectivityScope: Text });

/** The interface of an endpoint in the plugin's answer: only fields that were not in the request. */
export const CreatedEndpoint = Type.Object({
  Interface: orNull(Type.Object({ Address: Text, AddressIPv6: Text, MacAddress: Text })),
});
export type CreatedInterface = NonNullable<Static<typeof CreatedEndpoint>['Interface']>;

/** `RouteType` 0: over `NextHop`; 1: straight onto the link. */
export const JoinedEndpoint = Type.Object({
  InterfaceName: orNull(Type.Object({ SrcName: Text, DstPrefix: Text })),
  Gateway: Text,
  GatewayIPv6: Text,
  StaticRoutes: orNull(
    Type.Array(Type.Object({ Destination: Text, RouteType: Type.Optional(Type.Integer()), NextHop: Text })),
  ),
  DisableGatewayService: Type.Optional(Type.Boolean()),
});
export type JoinedEndpoint = Static<typeof JoinedEndpoint>;

/** As docker waits for a plugin that starts beside it. */
export const PATIENT: CallLimits = { patienceMs: 15_000 };

/** A plugin that a network has; one that is gone is a failure, not an unknown driver. Throws `failed`. */
export async function pluginOf(
  plugins: Plugins,
  name: string,
  kind: Capability,
  limits: CallLimits = PATIENT,
): Promise<Plugin> {
  try {
    return await plugins.get(name, kind, limits);
  } catch (error) {
    if (!(error instanceof EngineError) || error.kind !== 'notFound') throw error;
    throw new EngineError('failed', error.message, { cause: error });
  }
}

/** Calls a method of a network or address plugin. Throws `PluginError` in docker's words. */
export async function ask<T extends TSchema>(
  plugin: Plugin,
  method: string,
  body: object,
  answer: T,
): Promise<Static<T>> {
  try {
    return await plugin.call(method, body, answer, PATIENT);
  } catch (error) {
    if (!(error instanceof PluginError) || error.how !== 'refused' || error.status !== 200) throw error;
    throw new PluginError('refused', `remote: ${error.message}`, { status: 200, cause: error });
  }
}
