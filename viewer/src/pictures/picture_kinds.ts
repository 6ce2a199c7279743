// SPDX-License-Identifier: Apache-2.0
// The kinds of pictures that a file has.

import type { ComparedRun, Run } from "../run";
import { NodeColours } from "./attribute_colours";
import { CellDrawing } from "./cell_drawing";
import type { Drawing } from "./drawing";
import type { Encoding } from "./encoding";
import { LineDrawing } from "./line_drawing";
import { findNodeJobs } from "./node_jobs";
import { SpaceDrawing } from "./space_drawing";

/** The number of links beyond which lines hide one another. */
const MOST_LINES = 10000;

/** A kind of picture. Its drawing is made when it is first shown: for a large fabric that takes a while. */
interface PictureKind {
  name: string;
  title: string;
  make(): Drawing;
  drawing?: Drawing;
}

export class PictureKinds {
  readonly all: PictureKind[];
  private readonly defaultName: string;

  /** `compared` returns the run that is compared with at the time. */
  constructor(runs: readonly Run[], compared: () => ComparedRun | null) {
    // Pictures show the fabric, which all runs share; only the nodes of ranks and jobs differ by run.
    const [{ model }] = runs;
    const colourOf = makeNodeColouring(runs, compared);
    const flat = [
      { name: "lines", title: "Network", make: () => new LineDrawing(model, colourOf) },
      { name: "cells", title: "Cells", make: () => new CellDrawing(model) },
    ];
    const space = { name: "space", title: "In space", make: () => new SpaceDrawing(model, colourOf) };
    // A topology inferred from delays has positions in space only.
    this.all = model.space ? [...(model.header.about === undefined ? flat : []), space] : flat;
    this.defaultName = model.links > MOST_LINES ? "cells" : "lines";
  }

  /** Return the drawing of a name; an unknown name is the first kind. */
  drawing(name = this.defaultName): Drawing {
    const kind = this.all.find((each) => each.name === name) ?? this.all[0];
    kind.drawing ??= kind.make();
    return kind.drawing;
  }

  /** Return the name of the kind that follows. */
  nameAfter(name: string): string {
    const index = this.all.findIndex((each) => each.name === name);
    return this.all[(index + 1) % this.all.length].name;
  }
}

/** Return the colour of a node: by the selected attribute, else by its job; null if it has neither. */
function makeNodeColouring(
  runs: readonly Run[],
  compared: () => ComparedRun | null,
): (node: number, encoding: Encoding) => string | null {
  const attributeColours = new Map(runs.map((run) => [run, new NodeColours(run.model)]));
  const jobs = new Map(runs.map((run) => [run, findNodeJobs(run)]));
  const several = runs[0].model.header.jobs.length > 1;
  return (node, { state, theme, run, isChange }) => {
    if (state.colour !== undefined) return attributeColours.get(run)?.of(state.colour, node, theme) ?? null;
    const other = isChange ? compared()?.run : undefined;
    const job = jobs.get(run)?.get(node) ?? (other && jobs.get(other)?.get(node));
    if (job === undefined) return null;
    return several ? theme.jobs[job % theme.jobs.length] : theme.job;
  };
}
