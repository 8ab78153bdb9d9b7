package conformance

import (
	"encoding/json"
	"io"
)

// An Index is the suite without the websites, for other programs.
type Index struct {
	Suite   string  `json:"suite"`
	Version string  `json:"version"`
	Cases   []*Case `json:"cases"`
}

// NewIndex returns the index of some cases.
func NewIndex(cases []*Case) *Index {
	return &Index{Suite: "RFC 5005 conformance", Version: Version, Cases: cases}
}

// WriteTo writes the index as JSON.
func (i *Index) WriteTo(w io.Writer) (int64, error) {
	data, err := json.MarshalIndent(i, "", " ")
	if err != nil {
		return 0, err
	}
	n, err := w.Write(append(data, '\n'))
	return int64(n), err
}
