import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import { getText } from "../api/client";
import { Empty, Link, Skeleton } from "../ui";
import { openView, useParameter } from "../url";
import { toHtml } from "./guide/markdown";

const PAGES: [file: string, title: string][] = [
  ["guide.md", "Guide"],
  ["using.md", "Using it"],
  ["schedulers.md", "Schedulers"],
  ["traces.md", "Traces"],
  ["lab.md", "Experiments"],
  ["platforms.md", "Platforms"],
  ["real-runs.md", "Real runs"],
  ["validation.md", "Validation"],
  ["data.md", "Data"],
  ["operations.md", "Operations"],
  ["security.md", "Security"],
  ["benchmarks.md", "Benchmarks"],
];

/** The documents of the repository, served by the gateway: they work without the internet. */
export default function Guide() {
  const page = useParameter("page") ?? "guide.md";
  const { data, error } = useQuery({
    queryKey: ["guide", page],
    queryFn: ({ signal }) => getText(`/guide/${page}`, signal),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  const html = useMemo(() => (data === undefined ? "" : toHtml(page, data)), [page, data]);
  const article = useRef<HTMLElement>(null);
  useEffect(() => {
    article.current?.addEventListener("click", openInside);
    const anchor = html && window.location.hash.slice(1);
    if (anchor) document.getElementById(anchor)?.scrollIntoView();
  }, [html]);
  return (
    <div className="grid grid-cols-1 gap-4 lg:grid-cols-[10rem_minmax(0,1fr)]">
      <nav
        aria-label="Guide"
        className="flex flex-wrap gap-1 self-start text-[0.8125rem] lg:sticky lg:top-20 lg:flex-col"
      >
        {PAGES.map(([file, title]) => (
          <Link
            key={file}
            view="guide"
            change={{ page: file }}
            aria-current={file === page ? "page" : undefined}
            className="rounded-lg px-2.5 py-1.5 text-muted hover:text-ink aria-[current=page]:bg-accent/15 aria-[current=page]:text-ink"
          >
            {title}
          </Link>
        ))}
      </nav>
      {error && <Empty>{error.message}</Empty>}
      {!error && !html && <Skeleton />}
      {html && (
        <article
          data-testid="guide"
          ref={article}
          className="guide glass min-w-0 max-w-4xl rounded-[14px] px-5 py-4"
          // biome-ignore lint/security/noDangerouslySetInnerHtml: a document of the repository itself
          dangerouslySetInnerHTML={{ __html: html }}
        />
      )}
    </div>
  );
}

/** Links to other pages of the guide change the view instead of loading the dashboard again. */
function openInside(event: MouseEvent): void {
  const link = (event.target as Element).closest("a");
  if (!link || link.target || link.getAttribute("href")?.startsWith("#") || event.metaKey || event.ctrlKey) return;
  event.preventDefault();
  openView("guide", { page: new URLSearchParams(link.search).get("page") });
  if (link.hash) window.location.hash = link.hash;
}
