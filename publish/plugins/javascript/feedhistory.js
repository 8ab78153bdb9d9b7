// Makes an archived feed (RFC 5005) of a site's posts: feed.atom has the latest posts, and
// links to archives, in which every older post is.
//
// An archive is a block of posts by date, counted from the oldest, so it stays as it is when
// posts are added. feed.atom has the block that is being filled, the one before it, and posts
// that were edited since.

// documents returns the feed's documents: { path, posts, text(contents) }. A post is { url,
// title, date, updated }, with an absolute url; contents are the posts' HTML, in the order of
// the document's posts.
export function documents(posts, { base, title, author = title, size = 50, directory = "feeds" }) {
  const address = (path) => new URL(path, base.endsWith("/") ? base : base + "/").href;
  const name = (number) => `${directory}/${number}.atom`;
  posts = posts.map((post) => ({ ...post, date: new Date(post.date), updated: new Date(Math.max(new Date(post.date), new Date(post.updated ?? post.date))) }));
  posts.sort((a, b) => a.date - b.date || (a.url < b.url ? -1 : 1));
  const full = Math.floor(posts.length / size);
  const newest = posts.slice(Math.max(0, full - 1) * size);
  const edited = posts
    .slice(0, Math.max(0, full - 1) * size)
    .filter((post) => post.updated > post.date)
    .sort((a, b) => b.updated - a.updated)
    .slice(0, size);

  const document = (path, posts, links, mark = "") => {
    posts.sort((a, b) => b.updated - a.updated || (a.url < b.url ? 1 : -1));
    const text = (contents) => `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0">
<id>${escape(address("feed.atom"))}</id>
<title>${escape(title)}</title>
<updated>${(posts[0]?.updated ?? new Date(0)).toISOString()}</updated>
<author><name>${escape(author)}</name></author>
${mark}${Object.entries({ self: path, ...links })
  .map(([rel, to]) => `<link rel="${rel}" href="${escape(address(to))}"/>\n`)
  .join("")}${posts.map((post, i) => entry(post, contents[i])).join("")}</feed>
`;
    return { path, posts, text };
  };
  const archives = Array.from({ length: full }, (_, i) =>
    document(
      name(i + 1),
      posts.slice(i * size, (i + 1) * size),
      { current: "feed.atom", ...(i > 0 && { "prev-archive": name(i) }), ...(i + 1 < full && { "next-archive": name(i + 2) }) },
      "<fh:archive/>\n",
    ),
  );
  return [document("feed.atom", [...edited, ...newest], full > 0 ? { "prev-archive": name(full) } : {}), ...archives];
}

function entry(post, content) {
  const url = escape(post.url);
  return `<entry><id>${url}</id><title>${escape(post.title ?? "")}</title><published>${post.date.toISOString()}</published><updated>${post.updated.toISOString()}</updated>\
<link rel="alternate" href="${url}"/><content type="html" xml:base="${url}">${escape(content)}</content></entry>
`;
}

function escape(text) {
  const names = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return String(text)
    .toWellFormed()
    .replace(/[\0-\x08\v\f\x0e-\x1f\ufffe\uffff]/g, "")
    .replace(/[&<>"]/g, (c) => names[c]);
}
