// SPDX-License-Identifier: Apache-2.0
// The kinds of pictures that are possible for a file.

import { keepLast, lazy } from "../data/cache";
import type { Model } from "../data/model";
import { findUsedNodes } from "../data/used_nodes";
import type { ComparedRun, Run } from "../run";
import type { State } from "../state";
import { NodeColours } from "./attribute_colours";
import { CellDrawing } from "./cell_drawing";
import type { Drawing } from "./drawing";
import { type Encoding, findValue } from "./encoding";
import { type Folding, foldIdle } from "./folding";
import { foldIdleGroups } from "./group_folding";
import { LineDrawing } from "./line_drawing";
import { findNodeJobs } from "./node_jobs";
import { SpaceDrawing } from "./space_drawing";

/** With more links than this, lines hide each other. */
const MOST_LINES = 10000;

/** A kind of picture. `make` takes long for a large fabric, so it is called only for shown kinds. */
interface PictureKind {
  name: string;
  title: string;
  make(folding: Folding | null): Drawing;
}

export class PictureKinds {
  readonly all: PictureKind[];
  private readonly used: () => Uint8Array;
  /** The last drawing of each kind, and the drawing's folding. */
  private readonly made = new Map<PictureKind, { folding: Folding | null; drawing: Drawing }>();
  private readonly foldedAs = keepLast((open: number[]) =>
    (this.model.nodeGroup ? foldIdleGroups : foldIdle)(this.model, this.used(), open),
  );

  /** `compared` returns the run with which the page's run is currently compared. */
  constructor(
    private readonly runs: readonly Run[],
    compared: () => ComparedRun | null,
  ) {
    // Pictures show the fabric, which all runs share. Only the nodes of ranks and jobs differ from run to run.
    const { model } = this;
    this.used = lazy(() => findUsedNodes(runs));
    const colourOf = makeNodeColouring(runs, compared);
    const isFoldable = lazy(() => this.foldedAs([]) !== null);
    const flat = [
      {
        name: "lines",
        title: "Network",
        make: (folding: Folding | null) => new LineDrawing(model, colourOf, folding, isFoldable()),
      },
      { name: "cells", title: "Cells", make: () => new CellDrawing(model) },
    ];
    const space = { name: "space", title: "In space", make: () => new SpaceDrawing(model, colourOf) };
    // A topology that was inferred from delays has only positions in space.
    this.all = model.space ? [...(model.header.about === undefined ? flat : []), space] : flat;
  }

  private get model(): Model {
    return this.runs[0].model;
  }

  /** Return the drawing of a state. For an unknown name, the first kind is used. */
  drawing(state: State): Drawing {
    const folding = this.fold(state);
    const name = state.picture ?? this.defaultName(folding);
    const kind = this.all.find((each) => each.name === name) ?? this.all[0];
    const kept = this.made.get(kind);
    if (kept?.folding === folding) return kept.drawing;
    const drawing = kind.make(folding);
    this.made.set(kind, { folding, drawing });
    return drawing;
  }

  /** Return the name of the kind that follows a given kind. */
  nameAfter(name: string): string {
    const index = this.all.findIndex((each) => each.name === name);
    return this.all[(index + 1) % this.all.length].name;
  }

  private fold(state: State): Folding | null {
    // If links are coloured by a property, no node is folded, because links without traffic have the property too.
    if (state.unfold || findValue(this.model, state)) return null;
    return this.foldedAs(state.open ?? []);
  }

  private defaultName(folding: Folding | null): string {
    return (folding?.links ?? this.model.links) > MOST_LINES ? "cells" : "lines";
  }
}

/** Return a function that returns a node's colour: by the selected attribute, or by job; null without either. */
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
