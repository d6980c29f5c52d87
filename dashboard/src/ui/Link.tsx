import type { AnchorHTMLAttributes } from "react";
import { type Change, followInPage, useParameters, viewAddress, format } from "../url";

export interface LinkProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> {
  view: string;
  change?: Change;
}

/** A link to another view of the same run. */
export function Link({ view, change, ...rest }: LinkProps) {
  const parameters = useParameters();
  return <a href={format(viewAddress(parameters, view, change))} onClick={followInPage} {...rest} />;
}
