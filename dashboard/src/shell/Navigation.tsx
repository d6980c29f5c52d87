import { Link } from "../ui/Link";
import { VIEWS } from "../views";

/** Left of the page; on phones below it. */
export function Navigation({ view }: { view: string }) {
  return (
    <nav
      aria-label="Views"
      className="fixed inset-x-0 bottom-0 z-30 flex justify-around border-t border-line bg-ground/90 pb-[env(safe-area-inset-bottom)] backdrop-blur-xl md:static md:flex-col md:justify-start md:gap-1 md:border-0 md:bg-transparent md:px-2 md:backdrop-blur-none"
    >
      {Object.entries(VIEWS).map(([name, { title, icon: Icon }]) =>
        Icon ? (
          <Link
            key={name}
            view={name}
            aria-current={view === name ? "page" : undefined}
            className="group relative flex flex-1 flex-col items-center gap-1 rounded-xl px-2 py-2 text-[0.6875rem] text-muted transition-colors hover:text-ink aria-[current=page]:text-accent md:flex-none md:py-2.5 md:aria-[current=page]:bg-accent/10"
          >
            <Icon aria-hidden className="size-5" />
            {title}
          </Link>
        ) : null,
      )}
    </nav>
  );
}
