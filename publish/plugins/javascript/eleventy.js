// An Eleventy plugin: an archived feed of a collection's posts. In eleventy.config.js:
//
//     import feedhistory from "./feedhistory/eleventy.js";
//     config.addPlugin(feedhistory, { base: "https://example.org/", title: "A site" });
//
// More options: author, collection ("posts"), size (50, posts in an archive) and directory
// ("feeds", of the archives). The front matter's updated says when a post was edited.
import { documents } from "./feedhistory.js";

export default function (config, options) {
  const collection = options.collection ?? "posts";
  config.addTemplate(
    "feedhistory.11ty.js",
    {
      data: {
        layout: null,
        eleventyExcludeFromCollections: true,
        eleventyImport: { collections: [collection] },
        pagination: {
          data: `collections.${collection}`,
          size: 1,
          alias: "document",
          generatePageOnEmptyData: true,
          before: (posts) => documents(posts.map((post) => ({ post, url: new URL(post.url, options.base).href, title: post.data.title, date: post.date, updated: post.data.updated })), options),
        },
        permalink: (data) => data.document.path,
      },
      render: (data) => data.document.text(data.document.posts.map((post) => post.post.content)),
    },
  );
}
