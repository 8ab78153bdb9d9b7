package feedtest

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Disputed are pieces of markup about which parsers disagree, or which only some refuse: what is
// made of them must be XML for all.
var Disputed = []string{
	`<x a="1" a="2"/>`, `<link href="http://a.example/" href="http://b.example/"/>`, `<a:b xmlns:a="urn:a" xmlns:c="urn:a" a:d="1" c:d="2"/>`,
	`<q:z/>`, `<q:z>t</q:z>`, `<x q:z="1"/>`, `<x xmlns="urn:a" xmlns="urn:b"/>`, `<x xmlns:a="urn:a" xmlns:a="urn:b" a:b="1"/>`,
	`<x xmlns:a="" a:b="1"/>`, `<x xmlns:xml="urn:a"/>`, `<x xmlns:xmlns="urn:a"/>`, `<x xmlns="http://www.w3.org/XML/1998/namespace"/>`,
	`<x xmlns:a="http://www.w3.org/2000/xmlns/" a:b="1"/>`, `<x xmlns:a="http://www.w3.org/XML/1998/namespace" a:lang="en"/>`,
	`<a:b:c xmlns:a="urn:a"/>`, `<:a/>`, `<a:/>`, `<x :a="1"/>`, `<x a:="1"/>`, `<x xmlns:="urn:a"/>`, `<x xmlns:a:b="urn:a"/>`, `<xmlns:x/>`,
	`<x xml:lang="no tag!" xml:space="odd" xml:id="1 2"/>`, `<x xml:id="a"/><x xml:id="a"/>`, `<x xml:base="::"/>`,
	`<?xml version="1.0"?>`, `<?XML a?>`, `<?a:b c?>`, `<?a ?b?>`, `<?a`, `<!-- a -- b --->`, `<!--->`, `<![CDATA[a]]]]><![CDATA[>b]]>`, `<![CDATA[&#1;]]>`, `]]>`,
	`&#0;&#1;&#xFFFE;&#xD800;&#x110000;`, "\x01\x0b\x7f", "\xff\xfe", "\ufffe\uffff", "\r\n\r\u0085\u2028",
	`<x a="<"/>`, `<x a=b c/>`, `<x a='"&quot;&lt;&#10;&#9;'/>`, `&nbsp;&undefined;&amp`, `<x a="&nbsp;&undefined;"/>`,
	`<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p a="1" a="2" q:z="1" xmlns:xmlns="u">t<q:z/></p></div></content>`,
	`<content type="xhtml"><h:div xmlns:h="http://www.w3.org/1999/xhtml"><h:p h:a="1" a="2">t</h:p></h:div></content>`,
	`<content type="html">&lt;p a=1 a=2 q:z=3&gt;&lt;q:z&gt;</content>`, `<content type="application/xml"><q:z a="1" a="2"/></content>`,
	`<description><p a="1" a="2">t<q:z/></p></description>`, `<description><![CDATA[<p a=1 a=2>]]]]>]]></description>`,
	"<\u02dcpdated/>", "<x \u02dca='1'/>", "<\u00d7/>", `<x xmlns="urn:a b"/>`, `<x xmlns:a="a&quot;b&lt;" a:b="1"/>`, `<x xmlns:A="urn:a" xmlns:a="urn:a" A:b="1" a:b="2"/>`,
	`<entry xmlns="urn:a"/>`, `<x xmlns=""><id/></x>`, `<feed/>`, `<rss/>`, `<!DOCTYPE x [<!ENTITY a "<b/>">]>`, `<!ENTITY a "b">`, `</entry>`, `</item>`, `</feed>`, `</x>`,
}

// published are faults of a publisher's own that no parser stops at: they stay as they are.
var published = []string{"is not a valid URI", "validity error", "colons are forbidden from PI names"}

// Lint reads documents, by their names, with libxml2. Go's parser reads some that are no XML, such
// as those with an attribute twice. The test is skipped unless the environment has
// FEEDHISTORY_XMLLINT=required.
func Lint(t testing.TB, documents map[string][]byte) {
	t.Helper()
	program := Program(t, "FEEDHISTORY_XMLLINT", "xmllint")
	require.NotEmpty(t, documents)
	dir := t.TempDir()
	var said bytes.Buffer
	for some := range slices.Chunk(slices.Sorted(maps.Keys(documents)), 500) {
		args := []string{"--noout", "--nonet"}
		for _, name := range some {
			file := strings.NewReplacer("/", "_", " ", "_", "?", "_").Replace(name)
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), documents[name], 0o600))
			args = append(args, file)
		}
		c := exec.Command(program, args...)
		c.Dir, c.Stderr = dir, &said
		if err := c.Run(); err != nil {
			require.ErrorAs(t, err, new(*exec.ExitError)) // it says which document
			require.NotZero(t, said.Len())
		}
	}
	for line := range strings.Lines(said.String()) {
		isOurs := strings.Contains(line, "error :") && !slices.ContainsFunc(published, func(text string) bool { return strings.Contains(line, text) })
		require.False(t, isOurs, "%s%s", line, &said)
	}
}
