import { feedPlugin } from "@11ty/eleventy-plugin-rss";

export default function (config) {
  config.addPlugin(feedPlugin, {
    type: "atom",
    outputPath: "/all.xml",
    collection: { name: "posts", limit: 0 }, // all of them
    metadata: {
      language: "en",
      title: "Ann writes",
      base: "https://example.org/",
      author: { name: "Ann" },
    },
  });
}
