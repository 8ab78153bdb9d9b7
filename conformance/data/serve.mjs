#!/usr/bin/env node
// Serves the cases of this folder, each as a website on the loopback interface.
//
//     node serve.mjs walk/archived polls/plain
//
// It prints a line of JSON for each case with its name, the URL to give to a reader,
// and its two origins. Then it reads commands, one a line, and answers each with a
// line: "poll NAME" begins the next poll, "reset NAME" starts again, "requests NAME"
// lists the requests so far, and "judge NAME REPORT" judges a report, which is JSON. It
// ends with its standard input. In a test:
//
//     import { serve } from 'rfc5005-conformance'
//     const site = await serve('walk/archived')
//     const entries = await myReader(site.url)
//     await site.close()
//
// It needs Node 18, and nothing else.
import { createHash } from 'node:crypto'
import { readFileSync, realpathSync } from 'node:fs'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { judge } from './judge.mjs'

export { judge }

const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'))
export const manifest = read('manifest.json')

/** The case with a name, such as walk/archived, with its website and requirements. */
export const load = (name) => read(name + '.json')

/** Serves a case until it is closed. */
export async function serve(name) {
  const served = new Served(load(name))
  await served.listen()
  return served
}

class Served {
  constructor(data) {
    this.case = data
    this.resources = new Map(data.resources.map((r) => [r.path, r.states]))
    this.reset()
  }

  async listen() {
    this.servers = [0, 1].map(() => createServer((req, res) => this.answer(req, res)))
    await Promise.all(this.servers.map((s) => new Promise((done) => s.listen(0, '127.0.0.1', done))))
    ;[this.site, this.other] = this.servers.map((s) => '127.0.0.1:' + s.address().port)
    this.url = 'http://' + this.site + this.case.start
  }

  async close() {
    for (const s of this.servers) s.closeAllConnections?.()
    await Promise.all(this.servers.map((s) => new Promise((done) => s.close(done))))
  }

  /** Starts the case again. */
  reset() {
    this.number = 1
    this.counts = new Map()
    this.requests = []
    return null
  }

  /** Begins the next poll, and returns its number; null after the last. */
  poll() {
    return this.number >= (this.case.polls ?? []).length ? null : ++this.number
  }

  /** Records a request, and returns the answer and the number of requests. */
  find(req) {
    this.requests.push({ poll: this.number, method: req.method, url: req.url, header: req.headers })
    const bare = req.url.split('?')[0]
    for (const name of [req.url, bare, unescape_(bare)]) {
      const states = this.resources.get(name)
      if (!states) continue
      const n = (this.counts.get(name) ?? 0) + 1
      this.counts.set(name, n)
      const begun = states.filter((s) => s.request <= n || s.poll <= this.number)
      return [begun.at(-1) ?? manifest.missing, n]
    }
    return [manifest.missing, 0]
  }

  /** Replaces the three texts that only a server knows. */
  fill(text, count) {
    return text.replaceAll(manifest.site, this.site).replaceAll(manifest.other, this.other).replaceAll(manifest.count, count)
  }

  body(state, count) {
    if (state.body_base64) return Buffer.from(state.body_base64, 'base64')
    const text = state.body_gzip ? gunzipSync(Buffer.from(state.body_gzip, 'base64')).toString() : (state.body ?? '')
    return Buffer.from(this.fill(text, count))
  }

  answer(req, res) {
    const [state, count] = this.find(req)
    let { status } = state
    if (status === 0) return req.socket.destroy()
    let body = this.body(state, count)
    let header = state.header.flatMap(([name, value]) => [name, Buffer.from(this.fill(value, count)).toString('latin1')])
    if (state.validate) {
      const etag = `"${createHash('sha256').update(body).digest('hex')}"`
      header.push('ETag', etag)
      if (req.headers['if-none-match'] === etag) [status, body, header] = [304, Buffer.alloc(0), header.slice(2)] // without Content-Type
    }
    const length = state.content_length ?? body.length
    const short = length !== body.length
    if (state.cut) res.useChunkedEncodingByDefault = false
    if (state.cut || short) res.shouldKeepAlive = false
    if (status !== 304 && !state.cut) header.push('Content-Length', String(length))
    res.sendDate = false
    res.writeHead(status, header)
    if (req.method === 'HEAD') return res.end()
    if (short) return res.write(body, () => req.socket.destroy())
    res.end(body)
  }
}

/** The path without escapes; the path itself if its escapes are not UTF-8. */
function unescape_(path) {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

async function main(names) {
  const served = new Map()
  for (const name of names.length ? names : manifest.cases.map((c) => c.name)) {
    const s = await serve(name)
    served.set(name, s)
    console.log(JSON.stringify({ name, url: s.url, site: s.site, other: s.other }))
  }
  for await (const line of createInterface({ input: process.stdin })) {
    const [, verb, name, report] = /^(\w+) (\S+) ?(.*)$/.exec(line.trim())
    const s = served.get(name)
    console.log(JSON.stringify(verb === 'requests' ? s.requests : verb === 'judge' ? judge(s, JSON.parse(report)) : s[verb]()))
  }
  for (const s of served.values()) await s.close()
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await main(process.argv.slice(2))
