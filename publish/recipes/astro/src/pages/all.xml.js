import rss from "@astrojs/rss";

export async function GET(context) {
  const posts = Object.values(import.meta.glob("./posts/*.md", { eager: true }));
  return rss({
    title: "Ann writes",
    description: "All that Ann has written",
    site: context.site,
    items: await Promise.all(
      posts.map(async (post) => ({
        title: post.frontmatter.title,
        pubDate: new Date(post.frontmatter.date),
        link: post.url,
        content: await post.compiledContent(),
      })),
    ),
  });
}
