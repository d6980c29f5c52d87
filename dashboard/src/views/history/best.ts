/** Who did best in a run. The Oracle is what the others are measured by, so it does not compete. */
import type { Standing } from "../../api/types";
import { ORACLE } from "../../schedulers";

export function best(standings: Record<string, Standing>): (Standing & { name: string }) | null {
  const [first] = Object.entries(standings)
    .filter(([name, standing]) => name !== ORACLE && standing.results > 0)
    .sort(([, left], [, right]) => left.avg_time - right.avg_time);
  return first ? { name: first[0], ...first[1] } : null;
}
