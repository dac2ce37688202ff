import { buildkitMount } from '../buildkit/mount.ts';
import type { Pair, Step } from '../instruction.ts';

type Expand = (word: string) => string;

/** An instruction with its variables expanded, where docker allows them. Ports are words, so EXPOSE expands its own. */
export function expandStep<S extends Step>(step: S, expand: Expand): S;
export function expandStep(step: Step, expand: Expand): Step {
  switch (step.kind) {
    case 'env':
      return { ...step, pairs: expandPairs(step.pairs, expand) };
    case 'label':
      return step.isLiteral ? step : { ...step, pairs: expandPairs(step.pairs, expand) };
    case 'add':
    case 'copy':
      return {
        ...step,
        chown: expand(step.chown),
        chmod: expand(step.chmod),
        checksum: expand(step.checksum),
        sources: step.sources.map(expand),
        destination: expand(step.destination),
      };
    case 'run':
      return {
        ...step,
        mounts:
          step.mountTexts.length > 0
            ? step.mountTexts.map((text) => buildkitMount(text, expand))
            : step.mounts.map((mount) => ({
                ...mount,
                target: expand(mount.target),
                source: expand(mount.source),
                id: expand(mount.id),
              })),
      };
    case 'workdir':
      return { ...step, path: expand(step.path) };
    case 'user':
      return { ...step, user: expand(step.user) };
    case 'volume':
      return { ...step, paths: step.paths.map(expand) };
    case 'stopsignal':
      return { ...step, signal: expand(step.signal) };
    case 'arg':
      return {
        ...step,
        args: step.args.map(({ name, value }) => ({
          name: expand(name),
          value: value === undefined ? undefined : expand(value),
        })),
      };
    case 'maintainer':
    case 'onbuild':
    case 'cmd':
    case 'entrypoint':
    case 'healthcheck':
    case 'expose':
    case 'shell':
      return step;
  }
}

function expandPairs(pairs: readonly Pair[], expand: Expand): Pair[] {
  return pairs.map(({ name, value }) => ({ name: expand(name), value: expand(value) }));
}
