#!/usr/bin/env node
// A reader of whole feed histories (RFC 5005), with feedsmith.
//
//     const reading = await read('https://example.org/feed.atom', ledger) // of the reading before, if any
//     reading.entries, reading.verdict, reading.gaps
//     store(reading.ledger) // plain JSON, in the transaction that stores the entries
//
// It follows a history from its subscription document to its oldest document, keeps one copy
// of each entry, and says what is missing. With the ledger of the reading before, it reads
// what is new and what was missing.
import { parseFeed } from 'feedsmith'
import { XMLValidator } from 'fast-xml-parser'
import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const documents = 50 // of one history; RFC 5005 §6 asks for such a limit
const bytes = 4 << 20 // of one document, after decompression
const registry = 'http://www.iana.org/assignments/relation/'

/** A copy of an entry, with the time of its update and of its document's, in milliseconds. */
export type Copy = { title: string; time?: number; document?: number }
export type Verdict = 'whole' | 'window' | 'lossy' | 'partial'
/** What is missing: a document that a link leads to, or the entries above one. */
export type Debt = { url: string; from: string } | { window: string }
/** The memory of a feed between two readings: plain JSON. */
export type Ledger = { entries: [string, Copy][]; archives: string[]; archived: string[]; debts: Debt[]; window: string[] }
export type Reading = { entries: Map<string, Copy>; verdict: Verdict; gaps: string[]; ledger: Ledger }

type Document = {
  url: string; body: string; entries: [string, Copy][]; links: Map<string, string>; whole: boolean; complete: boolean; archive: boolean
}

/** A document that could not be read. */
export class Missing extends Error {}

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

/** Loads a document. One that is not well-formed is read as far as feedsmith reads it. */
async function load(requested: string): Promise<Document> {
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
  const document = stamp(feed.updated ?? feed.lastBuildDate)
  const head = body.replace(/<(\w+:)?(entry|item)[\s>][\s\S]*?<\/(\w+:)?\2>/g, '')
  return {
    url, body, links,
    entries: ((format === 'atom' ? feed.entries : feed.items) ?? []).map((e: any) => [
      text(e.id ?? e.guid ?? e.rdf?.about ?? e.link), { title: text(e.title), time: stamp(e.updated ?? e.date_modified), document },
    ]),
    whole: format === 'json' || XMLValidator.validate(body) === true,
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

/** The address of the next older document. */
const older = (d: Document) => (d.complete ? undefined : d.links.has('prev-archive') ? d.links.get('prev-archive') : d.links.get('next'))

/** Compares two copies of an entry as RFC 5005 §4.2 says. Of equal ones the second counts. */
function newer(a: Copy, b: Copy): boolean {
  for (const when of ['time', 'document'] as const)
    if (a[when] !== b[when] && a[when] != null && b[when] != null) return a[when]! > b[when]!
  return false
}

const bare = (url: string) => url.split('#')[0]
const ids = (d: Document) => d.entries.map(([id]) => id)

/** Where the history begins, the given document if that is another, and if nothing newer is missing. */
async function begin(url: string): Promise<[Document, Document | undefined, boolean]> {
  const document = await load(url), current = document.links.get('current')
  if (!current || document.links.has('previous'))
    return [document, undefined, !(document.archive || document.links.has('next-archive') || document.links.has('previous'))]
  try { // an archive names its subscription document
    const feed = [url, document.url].includes(bare(current)) ? document : await load(current)
    if (!feed.archive && feed.url !== document.url && ids(feed).join('\n') !== ids(document).join('\n')) return [feed, document, true]
  } catch { return [document, undefined, !document.archive] }
  return [document, undefined, true]
}

/** One reading. The ledger's debts are crossed out by what is read, and by nothing else. */
class Walk {
  entries: Map<string, Copy>
  archives: Set<string>
  archived: Set<string> // the ids of their entries
  debts: Debt[]
  pending: { url: string; from: string }[] // documents that were missing
  known: Set<string> // the archives of earlier readings
  window: string[]
  gaps: string[] = []
  shown = new Set<string>() // the ids in documents read now
  count = 0
  before = ''
  gained = false // an archive was read

  constructor(ledger?: Ledger) {
    this.entries = new Map(ledger?.entries)
    this.archives = new Set(ledger?.archives)
    this.archived = new Set(ledger?.archived)
    this.known = new Set(this.archives)
    this.window = ledger?.window ?? []
    this.debts = ledger?.debts.filter((d) => !('url' in d)) ?? []
    this.pending = ledger?.debts.filter((d) => 'url' in d) ?? []
  }

  /** Merges a document. The subscription document, read last, counts of equal copies. */
  add(d: Document, first = false) {
    const mine = new Map<string, Copy>()
    for (const [id, copy] of d.entries) if (!mine.has(id) || newer(copy, mine.get(id)!)) mine.set(id, copy)
    for (const [id, copy] of mine) {
      const known = this.entries.get(id)
      if (!known || (first ? !newer({ ...known, document: undefined }, copy) : newer(copy, known))) this.entries.set(id, copy)
      this.shown.add(id)
    }
    if (!d.whole) this.gaps.push(d.url)
    this.before = d.body
  }

  owe(url: string, from: string) {
    this.gaps.push(url)
    this.debts.push({ url, from })
  }

  /** Follows the links from an address to the end, or to an archive that was read to its end. */
  async chain(address: string | undefined, from: string, seen: Set<string>, archived: boolean) {
    while (address !== undefined && !(archived && this.known.has(bare(address)))) {
      if (!address || seen.has(bare(address))) { this.gaps.push(address || from); return } // no document, or a loop
      if (this.count++ === documents) return this.owe(address, from)
      let d: Document
      try { d = await load(address) } catch { return this.owe(address, from) }
      if (seen.has(d.url) || d.body === this.before) { this.gaps.push(address); return }
      seen.add(bare(address)).add(d.url)
      this.add(d)
      if (archived && d.whole) {
        this.gained = true
        for (const id of ids(d)) this.archived.add(id)
        this.archives.add(bare(address)).add(d.url)
      } else if (archived) this.debts.push({ url: address, from })
      ;[address, from] = [older(d), d.url]
    }
  }

  /** Reads the history from its beginning. */
  async read(d: Document, given: Document | undefined, seen: Set<string>): Promise<boolean> {
    const archived = d.complete || d.links.has('prev-archive')
    if (d.complete && d.whole) Object.assign(this, new Walk())
    this.add(d, true)
    await this.chain(older(d), d.url, seen, archived)
    if (given && !seen.has(given.url)) {
      seen.add(given.url)
      this.add(given)
      await this.chain(older(given), given.url, seen, archived)
    }
    for (const debt of this.pending) {
      if (seen.has(bare(debt.url)) || this.archives.has(bare(debt.url))) continue
      let named: string | undefined = debt.url
      try { // the link may have been mended
        if (!seen.has(debt.from)) named = older(await load(debt.from))
      } catch { /* it has not */ }
      await this.chain(named || undefined, debt.from, seen, archived)
    }
    return archived
  }

  /** Compares the entries shown now with those of the reading before: they join, or some are missing. */
  windows(d: Document, archived: boolean) {
    const shown = new Set(ids(d)), joins = (now: Set<string>) => this.window.some((id) => now.has(id))
    const plain = shown.size > 0 && !d.complete && older(d) === undefined && !joins(shown)
    if (this.window.length > 0 && (plain || (archived && !joins(this.shown)))) {
      const time = (id: string) => this.entries.get(id)?.time ?? 0
      this.debts.push({ window: this.window.reduce((a, b) => (time(b) > time(a) ? b : a)) })
    }
    this.debts = this.debts.filter((debt) => 'url' in debt || !(this.gained && (this.shown.has(debt.window) || this.archived.has(debt.window))))
    if (d.whole && shown.size > 0) this.window = [...shown]
  }
}

/** Reads a feed's history. It throws Missing if there is no feed, and none was read before. */
export async function read(url: string, ledger?: Ledger): Promise<Reading> {
  const walk = new Walk(ledger)
  let beginning: [Document, Document | undefined, boolean]
  try { beginning = await begin(url) } catch (error) {
    if (!ledger || !(error instanceof Missing)) throw error
    return { entries: walk.entries, verdict: 'partial', gaps: [url], ledger }
  }
  const [document, given, whole] = beginning
  const archived = await walk.read(document, given, new Set(given ? [document.url] : [url, document.url]))
  walk.windows(document, archived)
  const kind = archived ? 'whole' : older(document) === undefined ? 'window' : 'lossy'
  const { entries, archives, debts, window, gaps } = walk
  return {
    entries, verdict: gaps.length || debts.length || !whole ? 'partial' : kind, gaps,
    ledger: { entries: [...entries], archives: [...archives], archived: [...walk.archived], debts, window },
  }
}

/** feedwalk URL [LEDGER] prints a history as JSON, and keeps its ledger in a file. */
async function main(url: string, file?: string) {
  try {
    const { entries, verdict, gaps, ledger } = await read(url, file && existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined)
    if (file) writeFileSync(file, JSON.stringify(ledger))
    console.log(JSON.stringify({ entries: [...entries].map(([id, { title }]) => ({ id, title })), verdict, gaps }))
  } catch (error) {
    console.error(`there is no feed: ${error}`)
    process.exitCode = 1
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await main(process.argv[2], process.argv[3])
