/** Requests to the gateway. A failed request throws an ApiError with a message for the user. */
import type { Problem } from "./types";

const TOKEN_KEY = "hybrid.token";

export class ApiError extends Error {
  readonly status: number;
  readonly problems: string[];

  constructor({ title = "", detail, status = 0, problems }: Partial<Problem>) {
    super(detail || title);
    this.name = "ApiError";
    this.status = status;
    this.problems = problems ?? [];
  }
}

export function readToken(): string {
  return sessionStorage.getItem(TOKEN_KEY) ?? "";
}

export function storeToken(token: string): void {
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

export function get<T>(url: string, signal?: AbortSignal): Promise<T> {
  return request("GET", url, undefined, signal && { signal });
}

export function getText(url: string, signal?: AbortSignal): Promise<string> {
  return requestText("GET", url, undefined, signal && { signal });
}

/** With `keepalive` the request is sent even if the page is closed meanwhile. */
export function post<T>(url: string, body?: unknown, options?: Pick<RequestInit, "signal" | "keepalive">): Promise<T> {
  return request("POST", url, body, options);
}

/** CSV in the body; null where the gateway asks to try again later. */
export async function postText<T>(url: string, text: string): Promise<T | null> {
  try {
    return await request<T>("POST", url, new Blob([text], { type: "text/csv" }));
  } catch (error) {
    if (error instanceof ApiError && (error.status === 429 || error.status === 423)) return null;
    throw error;
  }
}

export function put<T>(url: string, body: unknown): Promise<T> {
  return request("PUT", url, body);
}

export function remove<T>(url: string): Promise<T> {
  return request("DELETE", url);
}

async function request<T>(method: string, url: string, body?: unknown, options?: RequestInit): Promise<T> {
  return JSON.parse(await requestText(method, url, body, options)) as T;
}

async function requestText(method: string, url: string, body?: unknown, options: RequestInit = {}): Promise<string> {
  const headers: Record<string, string> = {};
  const token = readToken();
  if (token && method !== "GET") headers.Authorization = `Bearer ${token}`;
  const blob = body instanceof Blob ? body : null;
  if (body !== undefined) headers["Content-Type"] = blob?.type ?? "application/json";
  const content = body === undefined ? null : (blob ?? JSON.stringify(body));
  const init = { ...options, method, headers, body: content };
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError({ title: "The gateway does not answer" });
  }
  const text = await response.text();
  // /api/health answers 503 with the usual body when a service is missing.
  if (response.ok || (response.status === 503 && url.startsWith("/api/health"))) return text;
  throw new ApiError(problemOf(response, text));
}

function problemOf({ status, statusText }: Response, text: string): Partial<Problem> {
  const title = `${status} ${statusText}`.trim();
  try {
    return { title, ...(JSON.parse(text) as Partial<Problem>), status };
  } catch {
    return { title, status }; // not JSON: the answer of a proxy, not of the gateway
  }
}

/** What is wrong with the body of a request, one text per problem. */
export function problemsOf(error: Error): string[] {
  return error instanceof ApiError && error.problems.length > 0 ? error.problems : [error.message];
}
