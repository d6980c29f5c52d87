import type { AnchorHTMLAttributes } from "react";
import { Link as RouterLink } from "wouter";
import { count } from "../format";
import { type Change, useViewAddress } from "../url";
import { type Column, numberColumn } from "./Table";

export interface LinkProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> {
  view: string;
  change?: Change;
}

/** A link to another view of the same run. */
export function Link({ view, change, ...rest }: LinkProps) {
  return <RouterLink href={useViewAddress(view, change)} onClick={() => window.scrollTo(0, 0)} {...rest} />;
}

export function taskColumn<Row extends { task_id: number }>(): Column<Row> {
  return numberColumn<{ task_id: number }>("task_id", "Task", (task) => (
    <Link view="task" change={{ task }} className="text-accent hover:underline">
      {count(task)}
    </Link>
  ));
}
