import { registerHooks, type ModuleHooks } from 'node:module';

/**
 * Takes relative imports of `.ts` files as they are written. Node by itself looks up each file, its real path and the
 * `package.json` files above it, which is a third of the time in which the daemon's 600 modules are loaded. All of ours
 * are ES modules, and no folder of ours is a link.
 */
export function resolveOwnModulesDirectly(): ModuleHooks {
  return registerHooks({
    resolve: (specifier, context, next) =>
      context.parentURL !== undefined && /^\.\.?\/.*\.ts$/.test(specifier)
        ? { url: new URL(specifier, context.parentURL).href, format: 'module-typescript', shortCircuit: true }
        : next(specifier, context),
  });
}
