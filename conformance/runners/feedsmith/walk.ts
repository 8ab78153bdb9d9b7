// A reader of RFC 5005 histories with feedsmith, to be copied into other programs.
//
//     npx tsx walk.ts URL
//
// It follows a history from its subscription document to its oldest document, keeps
// one copy of each entry, and says what is missing. It passes each case of this suite
// with the flag rfc that needs no state.
import { parseFeed } from 'feedsmith'
import { XMLValidator } from 'fast-xml-parser'

const documents = 50 // of one history; RFC 5005 §6 asks for such a limit
const bytes = 4 << 20 // of one document, after decompression
const registry = 'http://www.iana.org/assignments/relation/'

type Entry = { id: string; title: string; time?: number }
type Document = {
  url: string; body: string; entries: Entry[]; links: Map<string, string>; whole: boolean; time?: number; complete: boolean; archive: boolean
}
type Copy = Entry & { document?: number; age: number }

/** A document that could not be read. */
class Missing extends Error {}

/** Requests a document; returns its text and final address. */
async function get(url: string): Promise<[string, string]> {
  const address = new URL(url)
  if (!/^https?:$/.test(address.protocol) || address.username || address.password) throw new Missing(`refused: ${url}`)
  try {
    const response = await fetch(address, { signal: AbortSignal.timeout(10_000) })
    if (response.status !== 200) throw new Missing(`${url}: ${response.status}`)
    const parts: Uint8Array[] = []
    let size = 0
    for await (const part of response.body as any) {
      if ((size += part.length) > bytes) throw new Missing(`too large: ${url}`)
      parts.push(part)
    }
    const charset = /charset="?([\w-]+)/i.exec(response.headers.get('content-type') ?? '')?.[1]
    return [new TextDecoder(charset ?? 'utf-8').decode(Buffer.concat(parts)), response.url]
  } catch (error) {
    throw error instanceof Missing ? error : new Missing(String(error))
  }
}

const stamp = (text?: string | Date) => { const time = text ? new Date(text).getTime() : NaN; return Number.isNaN(time) ? undefined : time }
const text = (value: any): string => (typeof value === 'string' ? value : (value?.value ?? '')).trim()

/** Reads a document. One that is not well-formed is read as far as feedsmith reads it. */
async function read(requested: string): Promise<Document> {
  const [body, url] = await get(requested)
  let parsed: any
  try {
    parsed = parseFeed(body)
  } catch (error) {
    throw new Missing(`not a feed: ${requested}`)
  }
  const { format, feed } = parsed
  const links = new Map<string, string>()
  for (const link of (format === 'atom' ? feed.links : feed.atom?.links) ?? []) {
    const rel = (link.rel ?? 'alternate').replace(registry, '').replace(/^prev$/, 'previous')
    if (!links.get(rel)) links.set(rel, link.href ? resolve(link.href, base(body, url)) : '')
  }
  if (format === 'json' && feed.next_url) links.set('next', resolve(feed.next_url, url))
  const head = body.replace(/<(\w+:)?(entry|item)[\s>][\s\S]*?<\/(\w+:)?\2>/g, '')
  return {
    url, body, links,
    entries: ((format === 'atom' ? feed.entries : feed.items) ?? []).map((e: any) => ({
      id: text(e.id ?? e.guid ?? e.rdf?.about ?? e.link), title: text(e.title), time: stamp(e.updated),
    })),
    whole: format === 'json' || XMLValidator.validate(body) === true,
    time: stamp(feed.updated ?? feed.lastBuildDate),
    complete: /<\w+:complete[\s/>]/.test(head), archive: /<\w+:archive[\s/>]/.test(head),
  }
}

/** The base of the links in the head: xml:base of the root, or else the final address. */
function base(body: string, url: string): string {
  const given = /<(?:\w+:)?(?:feed|rss|RDF)\b[^>]*?\sxml:base\s*=\s*["']([^"']*)/.exec(body)?.[1]
  return given ? resolve(given, url) : url
}

function resolve(href: string, base: string): string {
  try { return new URL(href, base).href } catch { return href }
}

/** The address of the next older document, and whether it is an archive. */
function older(d: Document): [string | undefined, boolean] {
  if (d.complete) return [undefined, false]
  return d.links.has('prev-archive') ? [d.links.get('prev-archive'), true] : [d.links.get('next'), false]
}

/** Compares two copies of an entry as RFC 5005 §4.2 says. */
function newer(a: Copy, b: Copy): boolean {
  if (a.time !== b.time && a.time !== undefined && b.time !== undefined) return a.time > b.time
  if (a.document !== b.document && a.document !== undefined && b.document !== undefined) return a.document > b.document
  return a.age < b.age // nearer to the subscription document
}

const bare = (url: string) => url.split('#')[0]
const ids = (d: Document) => d.entries.map((e) => e.id).join('\n')

async function walk(url: string) {
  const entries = new Map<string, Copy>(), gaps: string[] = []
  const add = (d: Document, age: number) => {
    for (const e of d.entries) {
      const copy = { ...e, document: d.time, age }, known = entries.get(e.id)
      if (!known || newer(copy, known)) entries.set(e.id, copy)
    }
    if (!d.whole) gaps.push(d.url)
  }
  let document = await read(url), given: Document | undefined, whole = true
  const current = document.links.get('current')
  if (current && !document.links.has('previous') && ![url, document.url].includes(bare(current))) {
    try { // an archive names its subscription document
      const feed = await read(current)
      if (!feed.archive && feed.url !== document.url && ids(feed) !== ids(document)) [document, given] = [feed, document]
    } catch { whole = !document.archive }
  } else if (document.archive || document.links.has('next-archive') || document.links.has('previous')) whole = false
  const [first, archived] = older(document)
  let verdict = document.complete || archived ? 'whole' : first === undefined ? 'window' : 'lossy'
  const seen = new Set(given ? [document.url] : [url, document.url])
  let next: string | undefined
  for (let age = 0; age < documents; age++) {
    add(document, age)
    next = older(document)[0]
    if (next === undefined) {
      if (!given || seen.has(given.url) || older(given)[0] === undefined) break
      ;[document, given] = [given, undefined]
      continue
    }
    try {
      const before = document, address = bare(next)
      if (!next || seen.has(address)) throw new Missing(`a loop: ${next}`)
      document = await read(next)
      if (seen.has(document.url) || document.body === before.body) throw new Missing(`a loop: ${next}`)
      seen.add(address).add(document.url)
    } catch { gaps.push(next || document.url); break }
    if (age === documents - 1) gaps.push(next)
  }
  if (gaps.length || !whole) verdict = 'partial'
  return { entries: [...entries.values()].map(({ id, title }) => ({ id, title })), verdict, gaps }
}

try {
  console.log(JSON.stringify(await walk(process.argv[2])))
} catch (error) {
  console.error(`there is no feed: ${error}`)
  process.exitCode = 1
}
