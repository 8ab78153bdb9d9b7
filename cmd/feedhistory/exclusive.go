package main

// exclusive has, for each verb, the incompatible flags and arguments. If one is on the
// command line, settings of the others have no effect.
var exclusive = map[string][][]string{
	"check":    {{"digests", "save"}, {"digests", "against"}},
	"entries":  {{"json", "enclosures", "long"}},
	"export":   {{"deleted", "raw"}},
	"fetch":    {{"json", "format"}},
	"handover": {{"user", "token-env", "token-file"}},
	"import":   {{"from", "replace"}},
	"harvest":  {{"json", "format"}, {"db", "state"}, {"db", "fetch"}},
	"list":     {{"<URL>", "due"}, {"<URL>", "partial"}},
	"publish":  {{"size", "by"}},
	"serve":    {{"<DIR>", "base"}, {"<DIR>", "name"}, {"<DIR>", "private"}, {"<DIR>", "published"}},
	"sync":     {{"all", "every"}, {"all", "<URL>"}, {"all", "opml"}},
}

// formats has, for each verb and flag, the formats with which the flag has an effect. If
// the command line asks for another format, a setting of the flag has no effect.
var formats = map[string]map[string][]string{
	"export": {"raw": {"jsonl"}, "deleted": {"jsonl", "csv"}, "status": readerFormats, "starred": readerFormats},
	"fetch":  {"raw": {"jsonl"}},
}

var readerFormats = []string{"greader", "nextcloud"}
