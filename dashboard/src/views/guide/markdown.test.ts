import { describe, expect, it } from "vitest";
import { addressOf, slug, toHtml } from "./markdown";

describe("a page of the guide", () => {
  it("links to other pages inside the dashboard", () => {
    expect(addressOf("guide.md", "lab.md")).toBe("/?view=guide&page=lab.md");
    expect(addressOf("decisions/README.md", "../data.md#tables")).toBe("/?view=guide&page=data.md#tables");
    expect(addressOf("guide.md", "#words")).toBe("#words");
    expect(addressOf("guide.md", "https://example.org")).toBe("https://example.org");
  });

  it("names files that only a checkout has", () => {
    expect(addressOf("guide.md", "../README.md#using-it")).toBeNull();
    expect(toHtml("guide.md", "see [the map](../CONTRIBUTING.md)")).toContain("the map (<code>CONTRIBUTING.md</code>)");
  });

  it("has headings that links can name, below the heading of the view", () => {
    expect(slug("Reading the dashboard: `who` wins?")).toBe("reading-the-dashboard-who-wins");
    expect(toHtml("guide.md", "## When it fails")).toBe('<h3 id="when-it-fails">When it fails</h3>');
  });

  it("shows code as it is written", () => {
    expect(toHtml("guide.md", "```\na < b && c\n```")).toContain("<code>a &lt; b &amp;&amp; c</code>");
  });
});
