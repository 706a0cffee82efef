import type { Item } from "../../protocol";
import { isLook } from "./reads";

/** What stands together in the list: one item, or a turn's reads and searches in a row, with the thoughts between. */
export interface Row {
  /** Of its first item. */
  readonly id: string;
  /** The items, in order; it grows. */
  readonly members: string[];
  /** Whether it is of reads and searches. */
  readonly looks: boolean;
}

/** Items as rows. What is appended costs the same at the first item and at the thousandth. */
export class Rows {
  private all: Row[] = [];
  private places = new Map<string, number>();
  private source: readonly string[] = [];
  private taken = 0;
  /** Another one when the rows are others. */
  version = 0;

  constructor(private readonly item: (itemId: string) => Item | undefined) {}

  get length(): number {
    return this.all.length;
  }

  /** Take what was added to the ids; all of them, where they are another array. */
  follow(ids: readonly string[]): void {
    if (ids !== this.source) {
      this.source = ids;
      this.taken = 0;
      this.all = [];
      this.places = new Map();
      this.version++;
    }
    for (; this.taken < ids.length; this.taken++) this.add(ids[this.taken] as string);
  }

  slice(from: number, to?: number): Row[] {
    return this.all.slice(from, to);
  }

  at(place: number): Row | undefined {
    return this.all[place];
  }

  /** Where the row with that item stands. */
  placeOf(itemId: string): number | undefined {
    return this.places.get(itemId);
  }

  rowOf(itemId: string): Row | undefined {
    return this.all[this.places.get(itemId) ?? -1];
  }

  private add(itemId: string): void {
    const item = this.item(itemId);
    const looks = item !== undefined && isLook(item);
    const run = looks ? this.runBefore(item.turnId) : undefined;
    if (run === undefined) {
      this.places.set(itemId, this.all.length);
      this.all.push({ id: itemId, members: [itemId], looks });
      this.version++;
      return;
    }
    const place = this.places.get(run.id) ?? 0;
    const between = this.all.splice(place + 1).map((row) => row.id);
    if (between.length > 0) this.version++;
    for (const id of [...between, itemId]) {
      run.members.push(id);
      this.places.set(id, place);
    }
  }

  /** The last row, if it is of that turn's reads and searches; a thought may stand behind it. */
  private runBefore(turnId: string): Row | undefined {
    const last = this.all.at(-1);
    const thought = last !== undefined && this.item(last.id)?.kind === "thought";
    const run = thought ? this.all.at(-2) : last;
    return run?.looks && this.item(run.id)?.turnId === turnId ? run : undefined;
  }
}
