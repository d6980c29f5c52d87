import type { AnchorHTMLAttributes, MouseEvent } from "react";
import { Link as RouterLink } from "wouter";
import { count } from "../format";
import { type Change, focusContent, useViewAddress } from "../url";
import { type Column, numberColumn } from "./Table";

export interface LinkProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> {
  view: string;
  change?: Change;
}

/** A link to another view of the same run. */
export function Link({ view, change, ...rest }: LinkProps) {
  const onClick = (event: MouseEvent) => {
    const here = !event.ctrlKey && !event.metaKey && !event.shiftKey;
    if (here && event.currentTarget.closest("main")) focusContent(view); // the navigation stays
    window.scrollTo(0, 0);
  };
  return <RouterLink href={useViewAddress(view, change)} onClick={onClick} {...rest} />;
}

export function taskColumn<Row extends { task_id: number }>(): Column<Row> {
  return numberColumn<{ task_id: number }>("task_id", "Task", (task) => (
    <Link view="task" change={{ task }} className="text-accent hover:underline">
      {count(task)}
    </Link>
  ));
}
