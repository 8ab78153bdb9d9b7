// TypeScript's feedsmith with the loop that people write first: from document to
// document until there is no link, each id once.
//
//     npx tsx loop.ts URL
import { parseFeed } from 'feedsmith'

type Link = { rel?: string; href?: string }
type Item = { id?: string; guid?: { value?: string }; rdf?: { about?: string }; title?: string | { value?: string } }

const limit = 100 // requests
const entries = new Map<string, string>()
let url: string | undefined = process.argv[2]
for (let n = 0; url && n < limit; n++) {
  try {
    const response = await fetch(url)
    if (!response.ok) throw new Error(`${url}: ${response.status}`)
    const parsed = parseFeed(await response.text()) as any
    const { format, feed } = parsed
    const items: Item[] = (format === 'atom' ? feed.entries : feed.items) ?? []
    for (const item of items) {
      const id = item.id ?? item.guid?.value ?? item.rdf?.about ?? ''
      const title = typeof item.title === 'string' ? item.title : item.title?.value
      if (!entries.has(id)) entries.set(id, title ?? '')
    }
    const links: Link[] = (format === 'atom' ? feed.links : feed.atom?.links) ?? []
    const href: string | undefined = format === 'json' ? feed.next_url
      : (links.find((l) => l.rel === 'prev-archive') ?? links.find((l) => l.rel === 'next'))?.href
    url = href && new URL(href, response.url).href
  } catch (error) {
    console.error(String(error))
    if (n === 0) process.exit(1)
    break
  }
}
console.log(JSON.stringify({ entries: [...entries].map(([id, title]) => ({ id, title })) }))
