/** Pages of the guide as HTML. They come from the repository's own folder `docs`, so they need no sanitising. */
import { Marked, type Tokens } from "marked";
import { format } from "../../url";

/** A path of a link on a page, from the guide's folder; null if it leads out of it. */
export function resolve(page: string, href: string): string | null {
  const parts = page.split("/").slice(0, -1);
  for (const part of href.split("/")) {
    if (part === ".." && parts.length === 0) return null;
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

/** Where a link on a page leads inside the dashboard; null: to a file that only a checkout has. */
export function addressOf(page: string, href: string): string | null {
  if (/^[a-z]+:/.test(href) || href.startsWith("#")) return href;
  const [file = "", anchor = ""] = href.split("#");
  const target = resolve(page, file);
  if (target === null || !target.endsWith(".md")) return null;
  return format({ view: "guide", page: target }) + (anchor && `#${anchor}`);
}

/** The name of a heading in links, as GitHub makes it. */
export function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-");
}

export function toHtml(page: string, text: string): string {
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text: heading }: Tokens.Heading) {
        return `<h${depth + 1} id="${slug(heading)}">${this.parser.parseInline(tokens)}</h${depth + 1}>`;
      },
      link({ href, tokens }: Tokens.Link) {
        const inner = this.parser.parseInline(tokens);
        const address = addressOf(page, href);
        if (address === null) return `${inner} (<code>${href.replace(/^(\.\.\/)+/, "")}</code>)`;
        const outside = /^[a-z]+:/.test(address) ? ' target="_blank" rel="noreferrer"' : "";
        return `<a href="${address}"${outside}>${inner}</a>`;
      },
      image({ href, text: alternative }: Tokens.Image) {
        return `<img src="/guide/${resolve(page, href)}" alt="${alternative}">`;
      },
      code({ text: code, escaped }: Tokens.Code) {
        return `<pre tabindex="0"><code>${escaped ? code : asText(code)}</code></pre>`;
      },
      table(token: Tokens.Table) {
        const row = (cells: Tokens.TableCell[], tag: string) =>
          `<tr>${cells.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join("")}</tr>`;
        const head = token.header.some((cell) => cell.text) ? row(token.header, "th") : "";
        const body = token.rows.map((cells) => row(cells, "td")).join("");
        return `<div class="scroll" tabindex="0"><table>${head && `<thead>${head}</thead>`}<tbody>${body}</tbody></table></div>`;
      },
    },
  });
  return marked.parse(text, { async: false });
}

function asText(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}
