// Package cases has the files of the conformance suite's cases. FORMAT.md, in the folder
// above, explains them.
package cases

import "embed"

// Files has a txtar file for each case, such as walk/archived.txtar.
//
//go:embed behaviour polls walk
var Files embed.FS
