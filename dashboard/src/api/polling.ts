/** GET requests that repeat, and what happens when any request fails. */
import { QueryClient, useQueries, useQuery } from "@tanstack/react-query";
import { feed } from "../live";
import { toast } from "../ui/Toast";
import { ApiError, get } from "./client";

export const queryClient = new QueryClient({
  defaultOptions: {
    // A failed GET is retried with growing pauses. "always": the arena may run on this machine, offline.
    queries: { retry: true, networkMode: "always" },
    mutations: { networkMode: "always" },
  },
});

export interface Polled<T> {
  /** The last response; it stays while a newer request fails. */
  data: T | null;
  error: ApiError | null;
  loading: boolean;
  /** `data` is older than it should be: the newest request failed, or its query has changed. */
  stale: boolean;
  refetch: () => void;
}

/** GET `path` every `everyMs` (0: once); null sends no request. Components that read the same path share it. */
export function usePolled<T>(path: string | null, everyMs: number): Polled<T> {
  const query = useQuery<T, ApiError>({
    queryKey: [path],
    queryFn: ({ signal }) => get<T>(path ?? "", signal),
    enabled: path !== null,
    refetchInterval: everyMs || false,
    // A chart keeps its data while a new query of the same resource is on its way.
    placeholderData: (data, previous) => (resourceOf(path) === resourceOf(previous?.queryKey[0]) ? data : undefined),
  });
  const data = query.data ?? null;
  const error = query.failureReason;
  return {
    data,
    error,
    loading: path !== null && data === null && error === null,
    stale: data !== null && (query.isPlaceholderData || error !== null),
    refetch: query.refetch,
  };
}

/** Several paths of one kind, in their order. */
export function usePolledAll<T>(paths: string[], everyMs: number): (T | null)[] {
  const queries = useQueries({
    queries: paths.map((path) => ({
      queryKey: [path],
      queryFn: ({ signal }: { signal: AbortSignal }) => get<T>(path, signal),
      refetchInterval: everyMs || (false as const),
    })),
  });
  return queries.map((query) => query.data ?? null);
}

/** The path and its run: data of one run must never appear under another. */
function resourceOf(path: unknown): string | null {
  if (typeof path !== "string") return null;
  const [base, query] = path.split("?");
  return `${base}#${new URLSearchParams(query).get("run") ?? ""}`;
}

/** Everything on the screen is fetched again after a reconnect and when the run changes its state. */
export function refetchOnLiveChanges(): void {
  feed.link.subscribe((link, before) => {
    if (link.epoch !== before.epoch && before.epoch > 0) void queryClient.invalidateQueries();
  });
  feed.live.subscribe((live, before) => {
    if (live.run === before.run && live.state !== before.state) void queryClient.invalidateQueries();
  });
}

/** For `onError` of a mutation: `action` is what could not be done. */
export function toastFailure(action: string, error: Error): void {
  const unauthorized = error instanceof ApiError && error.status === 401;
  toast(`${action}: ${unauthorized ? "enter the token of this gateway first (key button)." : error.message}`, "bad");
}
