/** Calls to the gateway. A failed call throws an ApiError that says what a person can do. */
import type { Problem } from "./types";

const TOKEN_KEY = "hybrid.token";

export class ApiError extends Error {
  readonly status: number;
  readonly problems: string[];

  constructor(problem: Problem) {
    super(problem.detail || problem.title);
    this.name = "ApiError";
    this.status = problem.status;
    this.problems = problem.problems ?? [];
  }
}

export function readToken(): string {
  return sessionStorage.getItem(TOKEN_KEY) ?? "";
}

export function keepToken(token: string): void {
  if (token) sessionStorage.setItem(TOKEN_KEY, token);
  else sessionStorage.removeItem(TOKEN_KEY);
}

export type Query = Record<string, string | number | null | undefined>;

/** A path with its query; empty values are left out. */
export function path(base: string, query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") parameters.set(key, String(value));
  }
  const text = parameters.toString();
  return text ? `${base}?${text}` : base;
}

export function runPath(run: string, rest = "", query: Query = {}): string {
  return path(`/api/runs/${encodeURIComponent(run)}${rest}`, query);
}

/** The body as text: pollers compare it before they parse it. */
export async function fetchText(url: string, init: RequestInit = {}): Promise<string> {
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError({ title: "The gateway does not answer", status: 0, detail: "" });
  }
  const text = await response.text();
  // /api/health answers 503 with a body worth reading when a part is missing.
  if (response.ok || (response.status === 503 && url.startsWith("/api/health"))) return text;
  throw new ApiError(asProblem(response, text));
}

export async function get<T>(url: string, signal?: AbortSignal): Promise<T> {
  return JSON.parse(await fetchText(url, { signal: signal ?? null })) as T;
}

export async function post<T>(url: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  return send<T>("POST", url, body, signal);
}

export async function remove<T>(url: string): Promise<T> {
  return send<T>("DELETE", url);
}

async function send<T>(
  method: string,
  url: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<T> {
  const headers: Record<string, string> = {};
  const token = readToken();
  if (token) headers["Authorization"] = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const text = await fetchText(url, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
    signal: signal ?? null,
  });
  return JSON.parse(text) as T;
}

function asProblem(response: Response, text: string): Problem {
  try {
    const problem = JSON.parse(text) as Partial<Problem>;
    if (typeof problem.title === "string") {
      return { ...problem, title: problem.title, detail: problem.detail ?? "", status: response.status };
    }
  } catch {
    // Not JSON: a proxy in between has answered.
  }
  return { title: `${response.status} ${response.statusText}`.trim(), status: response.status, detail: "" };
}
