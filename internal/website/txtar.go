package website

import "strings"

// An Archive is a text file with other files in it, in Go's txtar format: a comment,
// then files, each after a line "-- name --".
type Archive struct {
	Comment string
	Files   []File
}

// A File is a file in an Archive.
type File struct{ Name, Data string }

// Parse reads an archive. Every text is a valid one.
func Parse(text string) *Archive {
	a := new(Archive)
	data := &a.Comment
	for line := range strings.Lines(text) {
		name, begins := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "-- ")
		name, ends := strings.CutSuffix(name, " --")
		if !begins || !ends {
			*data += line
			continue
		}
		a.Files = append(a.Files, File{Name: strings.TrimSpace(name)})
		data = &a.Files[len(a.Files)-1].Data
	}
	return a
}

// File returns the contents of the file with the given name.
func (a *Archive) File(name string) (data string, ok bool) {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data, true
		}
	}
	return "", false
}

// Set sets the contents of the file with the given name, or adds the file.
func (a *Archive) Set(name, data string) {
	for i := range a.Files {
		if a.Files[i].Name == name {
			a.Files[i].Data = data
			return
		}
	}
	a.Files = append(a.Files, File{Name: name, Data: data})
}

// String returns the archive's text.
func (a *Archive) String() string {
	var b strings.Builder
	b.WriteString(a.Comment)
	for _, f := range a.Files {
		b.WriteString("-- " + f.Name + " --\n" + f.Data)
	}
	return b.String()
}
