import { useRun } from "../live";
import { useParameter } from "../url";

/** The run in the address, else the run of the WebSocket. */
export function useSelectedRun(): string | null {
  const selected = useParameter("run");
  const live = useRun();
  return selected ?? live;
}
