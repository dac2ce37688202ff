import { refuseLargeSettings } from '../../buildfile/apply-setting.ts';
import { childImage } from '../../images/configuration/child-image.ts';
import type { Layer } from '../../layers/records.ts';
import type { RunConfig } from '../../records/run-config.ts';
import type { StageState } from '../stage.ts';

type Made = Readonly<{ layer: Layer | undefined; containerConfig: RunConfig; containerId?: string }>;

/** Stores the result of a step as an image without a name, for later builds. Throws `invalid` for one that is too large. */
export function storeStep(state: StageState, made: Made): void {
  const { engine } = state.build;
  const { config, maintainer: author } = state.settings;
  const parent = state.image;
  refuseLargeSettings(made.containerConfig); // with the arguments of a RUN
  const child = childImage(engine, { parent, config, author, ...made });
  state.build.addStored(child.json.length);
  const image = engine.images.insert(child.id, child.json, ({ id }) => engine.images.setBuiltHere(id, parent?.id));
  state.goOn(engine.images.get(image.id) ?? image);
}
