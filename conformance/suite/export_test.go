package suite

import "io"

// The words of reports.
const (
	Must, MustNot, Should, ShouldNot, May         = must, mustNot, should, shouldNot, may
	LevelEntries, LevelVerdict                    = levelEntries, levelVerdict
	LevelRequests, LevelState                     = levelRequests, levelState
	BasisRFC, BasisHTTP, BasisSecurity, BasisGoal = basisRFC, basisHTTP, basisSecurity, basisGoal
)

// Version is the version of the suite.
const Version = version

// RunError is a run without a result.
type RunError = runError

// Request is a request to a case's website.
type Request = request

// Levels are all levels in order.
var Levels = levels

// Parse reads a case from the text of its file.
func Parse(name, text string) (*Case, error) { return parse(name, text) }

// ReadResult reads the output of a reader.
func ReadResult(r io.Reader) (*Result, error) { return readResult(r) }

// NewManifest returns the list of cases of the folder data.
func NewManifest(cases []*Case) (*manifest, error) { return newManifest(cases) }

// Website returns the case as plain data.
func (c *Case) Website() (*siteData, error) { return c.siteData() }

// Begin serves the case's website.
func (c *Case) Begin() (*session, error) { return c.begin() }
