package atompmh

// NewMemoryShelf returns the Shelf of a Harvester without one.
func NewMemoryShelf() Shelf { return new(memoryShelf) }
