/** Who competes: no list in the spec means everybody who is deployed. */

/** The list after a scheduler was ticked or unticked; undefined when it is everybody again. */
export function toggled(
  chosen: readonly string[] | undefined,
  deployed: readonly string[],
  name: string,
): string[] | undefined {
  const now = chosen ?? deployed;
  const next = now.includes(name) ? now.filter((each) => each !== name) : inOrder([...now, name], deployed);
  const everybody = next.length === deployed.length && deployed.every((each) => next.includes(each));
  return everybody ? undefined : next;
}

function inOrder(names: string[], order: readonly string[]): string[] {
  const place = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);
  return names.sort((left, right) => place(left) - place(right));
}

/** What the spec says, when that is a list of names that means something. */
export function chosenOf(value: unknown): string[] | undefined {
  return Array.isArray(value) && value.length ? value.map(String) : undefined;
}
