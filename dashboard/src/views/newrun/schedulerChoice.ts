/** The schedulers of a draft: without a list, all that are deployed. */

/** The list after a click on a scheduler; undefined when all are selected. */
export function toggled(
  selection: readonly string[] | undefined,
  deployed: readonly string[],
  name: string,
): string[] | undefined {
  const now = selection ?? deployed;
  const next = now.includes(name) ? now.filter((each) => each !== name) : sortedAs([...now, name], deployed);
  const all = next.length === deployed.length && deployed.every((each) => next.includes(each));
  return all ? undefined : next;
}

function sortedAs(names: string[], order: readonly string[]): string[] {
  const position = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);
  return names.sort((left, right) => position(left) - position(right));
}

/** The list in the spec, unless it is empty or not a list. */
export function selectionOf(value: unknown): string[] | undefined {
  return Array.isArray(value) && value.length ? value.map(String) : undefined;
}
