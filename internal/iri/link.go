package iri

import "strings"

const space = " \t\r\n"

// maxParams bounds the parameters kept of one link.
const maxParams = 100

// CutLink reads the first link of a Link header field (RFC 8288), or of a document of the
// type application/link-format (RFC 6690), and returns the rest of the text. Names of
// parameters are in lower case; the first of a parameter's values counts (RFC 8288
// §3.3). If there is no link the params are nil.
func CutLink(text string) (target string, params map[string]string, rest string) {
	open := strings.IndexByte(text, '<')
	if open < 0 {
		return "", nil, ""
	}
	end := strings.IndexByte(text[open:], '>')
	if end < 0 {
		return "", nil, ""
	}
	target, rest = text[open+1:open+end], text[open+end+1:]
	params = map[string]string{}
	for {
		rest = strings.TrimLeft(rest, space)
		if !strings.HasPrefix(rest, ";") {
			return target, params, rest
		}
		var name, value string
		name, value, rest = cutParam(rest[1:])
		if _, seen := params[name]; !seen && len(params) < maxParams {
			params[name] = value
		}
	}
}

// cutParam reads `name`, `name=token` or `name="quoted"`.
func cutParam(s string) (name, value, rest string) {
	s = strings.TrimLeft(s, space)
	i := strings.IndexAny(s, "=;,")
	if i < 0 {
		return strings.ToLower(strings.TrimSpace(s)), "", ""
	}
	name = strings.ToLower(strings.TrimSpace(s[:i]))
	if s[i] != '=' {
		return name, "", s[i:]
	}
	s = strings.TrimLeft(s[i+1:], space)
	if !strings.HasPrefix(s, `"`) {
		if i = strings.IndexAny(s, ";,"); i < 0 {
			return name, strings.TrimSpace(s), ""
		}
		return name, strings.TrimSpace(s[:i]), s[i:]
	}
	var b strings.Builder
	for i = 1; i < len(s) && s[i] != '"'; i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return name, b.String(), s[min(i+1, len(s)):]
}
