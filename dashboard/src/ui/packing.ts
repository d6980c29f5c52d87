/** Places of widgets in a grid without holes that a later widget fits into. */

export interface Item {
  i: string;
  x: number;
  y: number;
  w: number;
  h: number;
}

function collide(left: Item, right: Item): boolean {
  return (
    left.x < right.x + right.w && right.x < left.x + left.w && left.y < right.y + right.h && right.y < left.y + left.h
  );
}

/** Each widget, in reading order, at the highest and then leftmost place that is free. */
export function packed<I extends Item>(items: readonly I[], columns: number): I[] {
  const placed: I[] = [];
  for (const item of [...items].sort((left, right) => left.y - right.y || left.x - right.x)) {
    placed.push(firstFit(item, placed, columns));
  }
  return items.map((item) => placed.find((each) => each.i === item.i) ?? item);
}

function firstFit<I extends Item>(item: I, placed: readonly I[], columns: number): I {
  for (let y = 0; ; y += 1) {
    for (let x = 0; x <= columns - item.w; x += 1) {
      const here = { ...item, x, y };
      if (!placed.some((other) => collide(here, other))) return here;
    }
  }
}
