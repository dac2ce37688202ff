import { checkVolumePlaces } from '../../containers/settings/mounts/volume-copy-up.ts';
import type { StageState } from '../stage.ts';
import { containerRoot } from './scratch-root.ts';

/**
 * Refuses volumes over files of the image so far, as a container with these settings would be. Throws `invalid`.
 *
 * Looks only when the files or the volumes have changed since the last step.
 */
export async function checkVolumes(state: StageState): Promise<void> {
  const { config, image, build } = state;
  const paths = Object.keys(config.Volumes ?? {});
  const checked = JSON.stringify([image?.layers, paths]);
  if (paths.length === 0 || state.checkedVolumes === checked) return;
  await using root = await containerRoot(build.engine, image?.id);
  checkVolumePlaces(root.path, paths);
  state.checkedVolumes = checked;
}
