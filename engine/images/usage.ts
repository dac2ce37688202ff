/** Which containers are made of an image: a function of the containers domain, given at start. */
export type ImageUsage = Readonly<{
  usedBy(imageId: string): readonly { id: string; running: boolean }[];
}>;
