# frozen_string_literal: true

# Publishes a Jekyll site's posts as an archived feed (RFC 5005): feed.atom has the latest
# posts, and links to archives, in which every older post is. Copy this file into _plugins,
# and set url in _config.yml.
#
# An archive is a block of posts by date, counted from the oldest, so it stays as it is when
# posts are added. feed.atom has the block that is being filled, the one before it, and posts
# that were edited (updated or last_modified_at in their front matter) since.
#
#     feedhistory:
#       size: 50          # posts in an archive
#       directory: feeds  # of the archives
module FeedHistory
  NAMESPACES = 'xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"'

  class Generator < Jekyll::Generator
    safe true
    priority :lowest

    def generate(site)
      config = site.config.fetch("feedhistory", {})
      size, @directory = config.fetch("size", 50), config.fetch("directory", "feeds")
      @site, @home = site, "#{site.config["url"]}#{site.config["baseurl"]}"
      blocks = site.posts.docs.sort_by { |post| [post.date, post.url] }.each_slice(size).to_a
      open = blocks.last && blocks.last.size < size ? blocks.pop : []
      blocks.each_index { |i| archive(blocks, i) }
      latest = (blocks.last || []) + open
      edited = (blocks.flatten - latest).select { |post| updated(post) > post.date }.max_by(size) { |post| updated(post) }
      page("feed.atom", edited + latest, [link("self", address("feed.atom")), (link("prev-archive", name(blocks.size)) unless blocks.empty?)])
    end

    private

    def archive(blocks, index)
      links = ["<fh:archive/>", link("self", name(index + 1)), link("current", address("feed.atom"))]
      links << link("prev-archive", name(index)) if index.positive?
      links << link("next-archive", name(index + 2)) if index + 1 < blocks.size
      page("#{@directory}/#{index + 1}.atom", blocks[index], links)
    end

    # page adds a document, newest post first.
    def page(path, posts, links)
      posts = posts.sort_by { |post| [updated(post), post.url] }.reverse
      out = Jekyll::PageWithoutAFile.new(@site, @site.source, File.dirname(path), File.basename(path))
      out.data.merge!("layout" => nil, "sitemap" => false, "posts" => posts.map { |post| entry(post) })
      # The posts are rendered when this page is, so their content comes by Liquid.
      out.content = <<~XML
        <?xml version="1.0" encoding="utf-8"?>
        <feed #{NAMESPACES}>
        <id>#{text(address("feed.atom"))}</id>
        <title>#{text(@site.config["title"] || @home)}</title>
        <updated>#{(posts.map { |post| updated(post) }.max || Time.at(0)).xmlschema}</updated>
        <author><name>#{text(@site.config["author"].is_a?(String) ? @site.config["author"] : @site.config["title"] || @home)}</name></author>
        #{links.compact.join("\n")}
        {% for post in page.posts %}{% assign document = site.posts | where: "id", post.id | first %}{{ post.head }}<content type="html">{{ document.content | xml_escape }}</content></entry>
        {% endfor %}</feed>
      XML
      @site.pages << out
    end

    def entry(post)
      { "id" => post.id, "head" => "<entry><id>#{text(address(post.url))}</id><title>#{text(post.data["title"].to_s)}</title>" \
        "<published>#{post.date.xmlschema}</published><updated>#{updated(post).xmlschema}</updated>#{link("alternate", address(post.url))}" }
    end

    def updated(post)
      given = post.data["updated"] || post.data["last_modified_at"]
      [given ? Time.parse(given.to_s) : post.date, post.date].max
    end

    def name(number) = address("#{@directory}/#{number}.atom")

    def address(path) = "#{@home}/#{path.delete_prefix("/")}"

    def link(rel, href) = %(<link rel="#{rel}" href="#{text(href)}"/>)

    def text(string) = string.encode(xml: :text).gsub('"', "&quot;")
  end
end
