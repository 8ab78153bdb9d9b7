// An archived feed of an Astro site's posts. In src/pages/[...feed].atom.js:
//
//     import archivedFeed from "../feedhistory/astro.js";
//     const posts = Object.values(import.meta.glob("./posts/*.md", { eager: true }));
//     export const { getStaticPaths, GET } = archivedFeed(posts, { title: "A site" });
//
// The base is the site of astro.config.mjs. More options: author, size (50, posts in an
// archive) and directory ("feeds", of the archives). The front matter's updated says when a
// post was edited. In place of Markdown modules, give { url, title, date, updated, content },
// where content is a function that returns HTML, or a promise of it: of an entry of a content
// collection, () => entry.rendered.html.
import { documents } from "./feedhistory.js";

export default function archivedFeed(posts, options) {
  const base = options.base ?? new URL(import.meta.env.BASE_URL, import.meta.env.SITE).href;
  const read = ({ frontmatter, compiledContent, ...post }) => ({
    ...post,
    ...(frontmatter && { title: frontmatter.title, date: frontmatter.date, updated: frontmatter.updated, content: compiledContent }),
    url: new URL(post.url, base).href,
  });
  return {
    getStaticPaths: () =>
      documents(posts.map(read), { ...options, base }).map((document) => ({
        params: { feed: document.path.replace(/\.atom$/, "") },
        props: { document },
      })),
    GET: async ({ props: { document } }) =>
      new Response(document.text(await Promise.all(document.posts.map((post) => post.content()))), {
        headers: { "Content-Type": "application/atom+xml" },
      }),
  };
}
