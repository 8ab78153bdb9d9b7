// Judges what a reader reports about a case that serve.mjs is serving.
//
//     const site = await serve('walk/archived')
//     for (const { outcome, requirement } of judge(site, { entries: [...], verdict: 'whole' }))
//       assert.notEqual(outcome, 'fail', requirement)
//
// The report is what FORMAT.md lets a reader print, as one object. An outcome is pass, warn
// (a broken should), fail (a broken must), or none: the reader does not report on it. After
// site.poll(), the judge speaks of the new poll.
const published = /<(?:\w+:)?id(?:\s[^>]*)?>(.*?)<\/|<(?:\w+:)?guid(?:\s[^>]*)?>(.*?)<\/|"id"\s*:\s*"?([^",}]*)/gs
const entities = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' }
const unescape = (text) => text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (all, hex, decimal, name) =>
  hex ? String.fromCodePoint(parseInt(hex, 16)) : decimal ? String.fromCodePoint(+decimal) : (entities[name] ?? all))

export function judge(site, report) {
  const name = (item) => (typeof item === 'string' ? item : item.id || item.ref || item.url || '')
  const path = (url) => (url.startsWith('http://' + site.site) ? url.slice(7 + site.site.length) : url)
    .replaceAll('http://' + site.other, 'http://other.invalid').replaceAll('@' + site.site, '@site.invalid')
  const known = (report.entries ?? []).map((e) => ({ id: path(name(e)), raw: name(e), title: e.title ?? '' }))
  const verdict = report.failed ? 'failed' : (report.verdict ?? '')
  const { requirements, polls } = site.case
  const poll = polls?.length ? site.number : 0
  const asked = site.requests.filter((r) => r.method === 'GET' && r.poll === (poll || 1))
    .map((r) => ({ url: (r.header.host === site.other ? 'http://other.invalid' : '') + r.url, header: r.header }))
  const ids = new Set(requirements.filter((q) => q.what === 'entry').map((q) => q.of))
  if (requirements.some((q) => q.what === 'other'))
    for (const state of [...site.resources.values()].flat())
      for (const m of site.body(state, '1').toString().matchAll(published)) ids.add(unescape(m[1] ?? m[2] ?? m[3]).trim())

  /** Whether a requirement's outcome has occurred; undefined if the reader does not report on it. */
  function holds({ what, of = '', value = '' }) {
    const here = asked.filter((r) => r.url === of).map((r) => r.header)
    const titles = known.filter((e) => e.id === of && e.title).map((e) => e.title)
    const told = { gap: report.gaps, deleted: report.deleted }[what]
    const [, field, text] = /^(\S+) (.*)$/.exec(value) ?? []
    switch (what) {
      case 'entry': return known.some((e) => e.id === of)
      case 'version': return titles.length ? titles.every((t) => t === value) : undefined
      case 'once': return known.length ? new Set(known.map((e) => e.raw)).size === known.length : undefined
      case 'other': return known.length ? known.some((e) => !ids.has(e.id) && !ids.has(e.raw)) : undefined
      case 'gap': return Array.isArray(told) ? told.some((g) => path(name(g)) === of) : undefined
      case 'deleted': return Array.isArray(told) ? told.some((d) => name(d) === of) : undefined
      case 'whole-without': return verdict ? verdict === 'whole' && !known.some((e) => e.id === of) : undefined
      case 'verdict': return verdict ? verdict === of || (of === 'partial' && verdict === 'failed') : undefined
      case 'requests': return asked.length <= +of
      case 'request': return here.length <= +value
      case 'conditional': return here.every((h) => h['if-none-match'] || h['if-modified-since'])
      case 'field': return here.length ? here.every((h) => (h[field.toLowerCase()] ?? '').includes(text)) : undefined
    }
  }

  return requirements.filter((q) => (q.poll ?? 0) === poll && q.strength !== 'may').map((q) => {
    const held = holds(q), broken = q.strength.startsWith('should') ? 'warn' : 'fail'
    return {
      outcome: held === undefined ? 'none' : held !== q.strength.endsWith('-not') ? 'pass' : broken,
      requirement: [q.strength, q.what, q.of, q.value].filter(Boolean).join(' '), clause: q.clause ?? '',
    }
  })
}
